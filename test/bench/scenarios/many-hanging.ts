import { setTimeout as delay } from 'node:timers/promises'
import { deliveryUpdates } from '../measure/database-usage.ts'
import { columns, compared, rounded } from '../measure/distribution.ts'
import { groupByDelivery, waitsOf } from '../measure/ledger.ts'
import { residentMib } from '../measure/processes.ts'
import { earlyRetries, retryLateness } from '../measure/retry-lateness.ts'
import { percentile } from '../../helpers/percentile.ts'
import type { Bench, Measured, Scenario } from '../scenario.ts'
import type { Stage, WebhookPlan } from '../stage.ts'

const HANGING_KEY = 'comment:updated'
const FAILING_KEY = 'comment:deleted'
const HEALTHY_KEY = 'customer:created'
const SLOW_KEY = 'customer:updated'
const HANGING = 300
const QUICK_HANGING = 20
/** Of each endpoint that hangs: one event goes to all of them. */
const BACKLOG = 20
/** Endpoints that answer 503 at once, and healthy ones; one event goes to all of a kind. */
const OTHERS = 20
const HEALTHY_EVENTS_PER_SECOND = 2.5
/** Endpoints that answer after two seconds; one event goes to all of them. */
const SLOW = 5
const SLOW_EVENTS_PER_SECOND = 0.2
const SECONDS = 60
const QUICK_SECONDS = 10
const FAILING_EVENTS = 3
/** Three retries of the warm-up. */
const WARM_UP_MS = 8_000

/** Many endpoints that hang, each with a backlog, next to ones that refuse at once and healthy ones. */
export const manyHanging: Scenario = {
  letter: 'l',
  name: 'many-hanging',
  title: 'what others notice of 300 endpoints that hang, each with a backlog of 20',
  async run(bench) {
    const alone = await measure(bench, 0)
    return compared(alone, await measure(bench, bench.quick ? QUICK_HANGING : HANGING))
  },
}

async function measure(bench: Bench, hanging: number): Promise<Measured> {
  const stage = await bench.openStage({
    webhooks: [
      ...plans(hanging, '/hang', HANGING_KEY),
      ...plans(OTHERS, '/fail/99', FAILING_KEY),
      ...plans(OTHERS, '/ok', HEALTHY_KEY),
      ...plans(SLOW, '/slow', SLOW_KEY),
    ],
    env: { WEBHOOKS_PER_ORGANISATION: '1000' },
  })
  // The first retries of a process show its start.
  await publishAt(stage, FAILING_KEY, 1, 1)
  await delay(WARM_UP_MS)
  await stage.takeArrivals()
  const updatesBefore = await deliveryUpdates(stage.databaseUrl)
  const startedAt = performance.now()
  if (hanging > 0) {
    bench.say(`${BACKLOG} events for each of ${hanging} endpoints that hang`)
    await publishAt(stage, HANGING_KEY, 4, BACKLOG)
  }
  const seconds = bench.quick ? QUICK_SECONDS : SECONDS
  bench.say(`${HEALTHY_EVENTS_PER_SECOND * OTHERS} deliveries a second to healthy endpoints`)
  const [healthy, slow] = await Promise.all([
    publishAt(stage, HEALTHY_KEY, HEALTHY_EVENTS_PER_SECOND, HEALTHY_EVENTS_PER_SECOND * seconds),
    publishAt(stage, SLOW_KEY, SLOW_EVENTS_PER_SECOND, SLOW_EVENTS_PER_SECOND * seconds),
    publishAt(stage, FAILING_KEY, 1, FAILING_EVENTS),
  ])
  const memoryMib = residentMib(...stage.pids)
  const updates = (await deliveryUpdates(stage.databaseUrl)) - updatesBefore
  const measuredSeconds = (performance.now() - startedAt) / 1_000
  const arrivals = await stage.takeArrivals()
  await stage.close()

  const waits = waitsOf(healthy, arrivals)
  const slowWaits = waitsOf(slow, arrivals)
  const retries = retryLateness(arrivals.filter(({ path }) => path.startsWith('/fail/')))
  const late = retries.map(({ lateMs }) => lateMs)
  const tried = new Set(arrivals.filter(({ path }) => path.startsWith('/hang/')).map(({ path }) => path))
  const doubled = [
    ...groupByDelivery(arrivals.filter(({ path }) => path.startsWith('/ok/'))).values(),
  ].filter((posts) => posts.length > 1).length
  const row = {
    hanging,
    healthy: waits.length,
    ...columns(waits),
    retries: late.length,
    retryEarliestMs: rounded(Math.min(...late)),
    retryP95Ms: rounded(percentile(late, 0.95)),
    slow: slow.length * SLOW,
    slowMade: slowWaits.length,
    ...columns(slowWaits, 'slow'),
    hangingTried: tried.size,
    updatesPerSecond: rounded(updates / measuredSeconds),
    memoryMib,
    doubled,
  }
  const untried = hanging - tried.size
  return {
    row,
    problems: [
      ...earlyRetries(retries),
      ...(untried > 0 ? [`${untried} of ${hanging} endpoints that hang were never tried`] : []),
    ],
  }
}

function plans(count: number, path: string, eventKey: string): WebhookPlan[] {
  return Array.from({ length: count }, (_, index) => ({ path: `${path}/${index}`, eventKey }))
}

function publishAt(stage: Stage, eventKey: string, perSecond: number, events: number) {
  return stage.publish(eventKey, { pace: { kind: 'open', perSecond }, limit: { events } })
}
