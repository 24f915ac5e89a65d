import { expect } from 'chai'
import { useDatabase } from '../../helpers/database/database.ts'
import { answer, createTestClient, startReceiver } from './receivers.ts'

/** Every code unit there is, lone surrogates included, each in the three bytes that UTF-8 would give it. */
function everyCodeUnit(): Buffer {
  const units = Array.from({ length: 0x10000 }, (_value, unit) => [
    0xe0 | (unit >> 12),
    0x80 | ((unit >> 6) & 0x3f),
    0x80 | (unit & 0x3f),
  ])
  return Buffer.from(units.flat())
}

describe('the stored part of an answer, in PostgreSQL', () => {
  const database = useDatabase()

  for (const [title, body] of [
    ['every byte', Buffer.from(Array.from({ length: 256 }, (_value, byte) => byte))],
    ['every code unit, encoded as it must not be', everyCodeUnit()],
    ['every character of the first plane', Buffer.from(String.fromCodePoint(...firstPlane()))],
  ] as const) {
    it(`can be stored for any answer: ${title}`, async () => {
      const head = Buffer.from('HTTP/1.1 500 Oops\r\nx-odd: ')
      // Controls end a header line or break it: the endpoint's answer is refused then.
      const odd = Buffer.from(Array.from({ length: 128 }, (_value, index) => 128 + index))
      const receiver = await startReceiver(answer(Buffer.concat([head, odd, Buffer.from('\r\n\r\n'), body])))
      const client = createTestClient({ maxResponseBytes: 1_000_000 })
      const url = `http://127.0.0.1:${receiver.port}/`
      const { response } = await client.post({ url, headers: {}, body: Buffer.from('{}') })
      await receiver.stop()
      const stored: unknown = await database.dataSource.query(
        'SELECT $1::text AS body, $2::jsonb AS headers',
        [response?.body, JSON.stringify(response?.headers)],
      )
      expect(stored).to.deep.equal([{ body: response?.body, headers: response?.headers }])
      expect(response?.body).not.to.match(/[^\P{Cc}\t\n\r]/u)
    })
  }
})

function firstPlane(): number[] {
  return Array.from({ length: 0xd800 }, (_value, point) => point)
}
