import { setTimeout as delay } from 'node:timers/promises'
import { publish, retryAll, switchOn } from './act.ts'
import { nowMs } from './clock.ts'
import { EVENT_KEYS, type Plan } from './plan.ts'
import { say } from './say.ts'
import type { PlayWorld } from './world.ts'

/** Limits the recovery after the last fault: three minutes on an idle machine, twice that under other load. */
export const CALM_LIMIT_MS = 360_000
const POLL_MS = 500
const RETRY_EVERY_MS = 10_000

/**
 * Once all faults have ended: endpoints confirm, webhooks are on, what waits or failed is retried, and one more event
 * goes to each webhook. Waits until nothing is left to do, for a while; what is left then is what the checks find.
 */
export async function calmDown(
  world: PlayWorld,
  { resumesStopped }: Pick<Plan, 'resumesStopped'>,
): Promise<void> {
  const deadline = nowMs() + CALM_LIMIT_MS
  world.endpoints.calmDown()
  await Promise.all(world.webhooks.map(({ id }) => switchOn(world, id)))
  if (resumesStopped)
    while ((await retryAll(world, 'stopped', null)) !== 202 && nowMs() < deadline) await delay(POLL_MS)
  say('webhooks are on, and what was stopped is retried where that is planned')
  await waitUntil(
    deadline,
    () => hasNone(world, UNFINISHED_DELIVERIES),
    async () => {
      await retryAll(world, 'force', null)
    },
  )
  say('every delivery is final')
  await publishUntilAccepted(world, deadline)
  const unfinished = `${UNFINISHED_DELIVERIES} UNION ALL ${UNFINISHED_BUSINESS}`
  await waitUntil(
    deadline,
    () => hasNone(world, unfinished),
    () => Promise.resolve(),
  )
  const left = await world.dataSource.query<{ what: string; id: string }[]>(unfinished)
  if (left.length === 0) say('all is calm')
  else say(`time is up, with ${left.map(({ what, id }) => `${what} ${id}`).join(', ')} unfinished`)
}

const UNFINISHED_DELIVERIES = `SELECT 'delivery' AS what, id FROM delivery WHERE state NOT IN ('completed', 'stopped')`

const UNFINISHED_BUSINESS = `SELECT 'incident' AS what, id FROM incident WHERE closed_at IS NULL OR sweep_at IS NOT NULL
  UNION ALL SELECT 'retry_job', id FROM retry_job WHERE state <> 'done'
  UNION ALL SELECT 'notification', id FROM notification WHERE state IN ('pending', 'sending')`

/** One event for each event key, so that every webhook has a success at the end. */
async function publishUntilAccepted(world: PlayWorld, deadline: number): Promise<void> {
  for (const eventKey of EVENT_KEYS) {
    for (;;) {
      await publish(world, { eventKey, isKeyed: false, repeats: 0 })
      if (world.publications.at(-1)?.tries.at(-1)?.status === 202 || nowMs() > deadline) break
      await delay(POLL_MS)
    }
  }
}

async function waitUntil(
  deadline: number,
  isReached: () => Promise<boolean>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  let nextAt = nowMs()
  while (!(await isReached()) && nowMs() < deadline) {
    if (nowMs() >= nextAt) {
      await meanwhile()
      nextAt = nowMs() + RETRY_EVERY_MS
    }
    await delay(POLL_MS)
  }
}

async function hasNone({ dataSource }: PlayWorld, query: string): Promise<boolean> {
  return (await dataSource.query<object[]>(`${query} LIMIT 1`)).length === 0
}
