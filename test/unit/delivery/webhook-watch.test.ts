import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { createWebhookWatch } from '../../../src/delivery/webhook-watch.ts'

const QUICK = { succeeded: true, durationMs: 20 }
const SLOW = { succeeded: true, durationMs: 1_001 }
const FAILED = { succeeded: false, durationMs: 20 }

describe('what a process sees of webhooks', () => {
  it('takes a webhook for well of which it has seen nothing', () => {
    expect(createWebhookWatch().isWell('w', performance.now())).to.equal(true)
  })

  it('counts POSTs under way, also those that end without an outcome', () => {
    const watch = createWebhookWatch()
    const [one, two] = [watch.begin('w'), watch.begin('w')]
    watch.begin('v')
    expect([watch.inFlight('w'), watch.inFlight('v'), watch.inFlight('u')]).to.deep.equal([2, 1, 0])
    one(QUICK)
    two(null)
    expect(watch.inFlight('w')).to.equal(0)
    expect(watch.isWell('w', performance.now())).to.equal(true)
  })

  it('does not trust an endpoint that failed after the database said that it was well', () => {
    const watch = createWebhookWatch()
    const before = performance.now()
    watch.begin('w')(FAILED)
    expect(watch.isWell('w', before)).to.equal(false)
    watch.begin('w')(QUICK)
    expect(watch.isWell('w', before)).to.equal(false)
    expect(watch.isWell('w', performance.now() + 1)).to.equal(true)
    expect(watch.isWell('v', before)).to.equal(true)
  })

  it('tells what a POST takes: as the last one, longer while one hangs, the worst where none was ever answered', async () => {
    const watch = createWebhookWatch()
    expect(watch.takesMs('w', 15_000)).to.equal(0)
    const one = watch.begin('w')
    expect(watch.takesMs('w', 15_000)).to.equal(15_000)
    one({ succeeded: false, durationMs: 20 })
    expect(watch.takesMs('w', 15_000)).to.equal(20)
    watch.begin('w')
    await delay(60)
    expect(watch.takesMs('w', 15_000)).to.be.within(50, 1_000)
  })

  it('takes an endpoint for slow after a slow answer, until a quick one', () => {
    const watch = createWebhookWatch()
    watch.begin('w')(SLOW)
    expect(watch.isWell('w', performance.now() + 1)).to.equal(false)
    watch.begin('w')(null)
    expect(watch.isWell('w', performance.now() + 1)).to.equal(false)
    watch.begin('w')(QUICK)
    expect(watch.isWell('w', performance.now() + 1)).to.equal(true)
  })

  it('takes an endpoint for slow that has not answered for a second, whatever else it answered', async () => {
    const watch = createWebhookWatch()
    const hanging = watch.begin('w')
    await delay(900)
    watch.begin('w')(QUICK)
    expect(watch.isWell('w', performance.now())).to.equal(true)
    await delay(150)
    watch.begin('w')(QUICK)
    expect(watch.isWell('w', performance.now())).to.equal(false)
    hanging(null)
    expect(watch.isWell('w', performance.now())).to.equal(true)
  })

  it('knows what was changed here since something was read', () => {
    const watch = createWebhookWatch()
    const before = performance.now()
    expect(watch.hasChangedSince('w', before)).to.equal(false)
    watch.changed('w')
    expect(watch.hasChangedSince('w', before)).to.equal(true)
    expect(watch.hasChangedSince('w', performance.now() + 1)).to.equal(false)
    expect(watch.hasChangedSince('v', before)).to.equal(false)
    watch.changed('w')
    watch.changed('v')
    expect(watch.hasChangedSince('w', before)).to.equal(true)
  })

  it('forgets no webhook with a POST under way, however many others it sees', () => {
    const watch = createWebhookWatch()
    watch.begin('hangs')
    for (let index = 0; index < 10_100; index++) watch.begin(`w${index}`)(QUICK)
    expect(watch.inFlight('hangs')).to.equal(1)
  })
})
