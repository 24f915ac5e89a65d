import { rounded } from '../measure/distribution.ts'
import { settle } from '../measure/ledger.ts'
import { clock } from '../measure/clock.ts'
import type { Arrival } from '../harness/receiver.ts'
import type { Scenario } from '../scenario.ts'
import { writeOverdue } from '../waiting-deliveries.ts'

const WEBHOOKS = 10
const PER_WEBHOOK = 1_500
const QUICK_PER_WEBHOOK = 5
const EVENT_KEY = 'customer:created'

/** Temporal's data is lost: deliveries of several webhooks are overdue, and none has its workflow any more. */
export const recovery: Scenario = {
  letter: 'm',
  name: 'recovery',
  title: 'overdue deliveries of ten webhooks whose workflows are gone, until all are delivered',
  async run(bench) {
    const paths = Array.from({ length: WEBHOOKS }, (_, index) => `/ok/${index}`)
    const stage = await bench.openStage({ webhooks: paths.map((path) => ({ path, eventKey: EVENT_KEY })) })
    const count = bench.quick ? QUICK_PER_WEBHOOK : PER_WEBHOOK
    const ids: string[] = []
    for (const webhookId of stage.webhookIds)
      ids.push(...(await writeOverdue(stage.dataSource, { webhookId, count })))
    bench.say(`${ids.length} overdue deliveries of ${WEBHOOKS} webhooks`)
    const startedAt = clock()
    await stage.dataSource.query(`UPDATE delivery SET sweep_at = now() WHERE state = 'waiting'`)
    for (const path of paths) await stage.arrived(path, { deliveries: count })
    const arrivals = await stage.takeArrivals()
    await stage.close()
    const { lost, doubled, problems } = settle(ids, arrivals)
    const tookMs = Math.max(...arrivals.map(({ arrivedAt }) => arrivedAt)) - startedAt
    const firsts = paths.map((path) => firstArrival(arrivals, path) - startedAt)
    const row = {
      deliveries: ids.length,
      tookMs: rounded(tookMs),
      perSecond: rounded((ids.length / tookMs) * 1_000),
      firstWebhookMs: rounded(Math.min(...firsts)),
      lastWebhookMs: rounded(Math.max(...firsts)),
      lost,
      doubled,
    }
    return { rows: [row], problems }
  },
}

function firstArrival(arrivals: readonly Arrival[], path: string): number {
  return Math.min(...arrivals.filter((arrival) => arrival.path === path).map(({ arrivedAt }) => arrivedAt))
}
