import { expect } from 'chai'

type ZonedTime = {
  toLocalTime: (iso: string, timeZone: string) => string
  toInstant: (local: string, timeZone: string) => string
}

/** It runs in browsers; its types are checked there. */
const module = new URL('../../../src/web/pages/app/lib/times.js', import.meta.url).href

describe("times entered in the organisation's zone", () => {
  let { toLocalTime, toInstant } = {} as ZonedTime
  before(async () => {
    ;({ toLocalTime, toInstant } = (await import(module)) as ZonedTime)
  })

  it('are the instants at which its clocks show them, in summer, in winter and around the change', () => {
    for (const [local, zone, iso] of [
      ['2026-05-04T11:02', 'Europe/Brussels', '2026-05-04T09:02:00.000Z'],
      ['2026-12-31T23:59', 'Europe/Brussels', '2026-12-31T22:59:00.000Z'],
      ['2026-03-29T03:30', 'Europe/Brussels', '2026-03-29T01:30:00.000Z'],
      ['2026-10-25T03:30', 'Europe/Brussels', '2026-10-25T02:30:00.000Z'],
      ['2026-05-04T00:00', 'Asia/Kolkata', '2026-05-03T18:30:00.000Z'],
      ['2026-05-04T11:02', 'UTC', '2026-05-04T11:02:00.000Z'],
      ['0202-05-04T11:02', 'UTC', '0202-05-04T11:02:00.000Z'],
    ] as const) {
      expect(toInstant(local, zone), `${local} ${zone}`).to.equal(iso)
      expect(toLocalTime(iso, zone), `${iso} ${zone}`).to.equal(local)
    }
  })

  it('are empty for what is no time, and in UTC for an unknown zone', () => {
    expect(toInstant('', 'UTC')).to.equal('')
    expect(toLocalTime('soon', 'UTC')).to.equal('')
    for (const year of ['-000005', '0000', '+010000', '+275760'])
      expect(toLocalTime(`${year}-05-04T11:02:00Z`, 'UTC'), year).to.equal('')
    for (const year of ['0000', '10000', '275760'])
      expect(toInstant(`${year}-05-04T11:02`, 'Asia/Kolkata'), year).to.equal('')
    expect(toInstant('0001-01-01T00:00', 'Asia/Kolkata')).to.equal('')
    expect(toLocalTime('9999-12-31T23:59:00Z', 'Asia/Kolkata')).to.equal('')
    expect(toInstant('2026-05-04T11:02', 'Mars/Base')).to.equal('2026-05-04T11:02:00.000Z')
  })
})
