import { BURST } from '../load.ts'
import { columns, compared, rounded } from '../measure/distribution.ts'
import { settlePublished, waitsOf } from '../measure/ledger.ts'
import { earlyRetries, retryLateness } from '../measure/retry-lateness.ts'
import type { Bench, Measured, Scenario } from '../scenario.ts'
import type { Stage } from '../stage.ts'

const HEALTHY = { path: '/ok/healthy', eventKey: 'customer:created' }
const FLAKY = { path: '/fail/1/flaky', eventKey: 'comment:created' }
const HANGING = { path: '/hang/backlog', eventKey: 'comment:updated' }

const HEALTHY_PER_SECOND = 20
const FLAKY_PER_SECOND = 5
const SECONDS = 30
const QUICK_SECONDS = 5
const BACKLOG = 1_000
const QUICK_BACKLOG = 100

/**
 * A healthy webhook and one that refuses each delivery once, first alone, then next to one that never
 * answers, to which a backlog was published just before.
 */
export const isolation: Scenario = {
  letter: 'd',
  name: 'isolation',
  title: 'what others notice of a webhook that hangs with a backlog',
  async run(bench) {
    const alone = await measure(bench, 0)
    return compared(alone, await measure(bench, bench.quick ? QUICK_BACKLOG : BACKLOG))
  },
}

async function measure(bench: Bench, backlog: number): Promise<Measured> {
  const stage = await bench.openStage({ webhooks: [HEALTHY, FLAKY, HANGING] })
  if (backlog > 0) {
    bench.say(`${backlog} events for the webhook that hangs`)
    await stage.publish(HANGING.eventKey, { pace: BURST, limit: { events: backlog } })
  }
  const seconds = bench.quick ? QUICK_SECONDS : SECONDS
  bench.say(`${HEALTHY_PER_SECOND} a second to the one that is well, ${FLAKY_PER_SECOND} to the other`)
  const [toHealthy, toFlaky] = await Promise.all([
    publishAt(stage, HEALTHY.eventKey, HEALTHY_PER_SECOND, seconds),
    publishAt(stage, FLAKY.eventKey, FLAKY_PER_SECOND, seconds),
  ])
  await stage.arrived(HEALTHY.path, { deliveries: toHealthy.length })
  await stage.arrived(FLAKY.path, { posts: 2 * toFlaky.length })
  const arrivals = await stage.takeArrivals()
  await stage.close()

  const { lost, doubled, problems } = settlePublished([...toHealthy, ...toFlaky], arrivals)
  const retries = retryLateness(arrivals.filter(({ path }) => path === FLAKY.path))
  const late = retries.map(({ lateMs }) => lateMs)
  const row = {
    backlog,
    healthy: toHealthy.length,
    ...columns(waitsOf(toHealthy, arrivals)),
    retries: late.length,
    retryEarliestMs: rounded(Math.min(...late)),
    ...columns(late, 'retry'),
    lost,
    doubled,
  }
  return { row, problems: [...problems, ...earlyRetries(retries)] }
}

function publishAt(stage: Stage, eventKey: string, perSecond: number, seconds: number) {
  const pace = { kind: 'open', perSecond } as const
  return stage.publish(eventKey, { pace, limit: { events: perSecond * seconds } })
}
