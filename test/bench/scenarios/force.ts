import { setTimeout as delay } from 'node:timers/promises'
import { compared, rounded } from '../measure/distribution.ts'
import { settle } from '../measure/ledger.ts'
import { clock } from '../measure/clock.ts'
import { callApi } from '../organisation.ts'
import type { Bench, Measured, Scenario } from '../scenario.ts'
import { HOOK } from '../stage.ts'
import { writeFailed, writeWaiting } from '../waiting-deliveries.ts'

const DELIVERIES = 2_000
const QUICK_DELIVERIES = 60
const POLL_MS = 100

type Job = { id: string; state: string; total: number }

/** A receiver is healthy again, and a user has everything retried: waiting and failed deliveries. */
export const force: Scenario = {
  letter: 'f',
  name: 'force',
  title: 'a forced retry of everything that waits, and of everything that failed',
  async run(bench) {
    return compared(await measure(bench, 'waiting'), await measure(bench, 'failed'))
  },
}

async function measure(bench: Bench, state: 'waiting' | 'failed'): Promise<Measured> {
  const count = bench.quick ? QUICK_DELIVERIES : DELIVERIES
  const stage = await bench.openStage({ webhooks: [HOOK] })
  const backlog = { webhookId: stage.webhookIds[0]!, count }
  const ids =
    state === 'failed'
      ? await writeFailed(stage.dataSource, backlog)
      : await writeWaiting(stage, backlog, bench.say)
  bench.say(`a forced retry of ${count} ${state} deliveries`)
  const askedAt = clock()
  const total = await runJob(stage.apiUrl)
  const doneMs = clock() - askedAt
  await stage.arrived(HOOK.path, { deliveries: count })
  const arrivals = await stage.takeArrivals()
  await stage.close()
  const { lost, doubled, problems } = settle(ids, arrivals)
  const arrivedMs = arrivals.map(({ arrivedAt }) => arrivedAt - askedAt)
  const tookMs = Math.max(...arrivedMs)
  const row = {
    state,
    deliveries: total,
    firstPostMs: rounded(Math.min(...arrivedMs)),
    lastPostMs: rounded(tookMs),
    doneMs: rounded(doneMs),
    perSecond: rounded((arrivals.length / tookMs) * 1_000),
    lost,
    doubled,
  }
  return { row, problems }
}

/** Returns how many deliveries it covered, when all of them have been attempted. */
async function runJob(apiUrl: string): Promise<number> {
  let job = (await callApi(apiUrl, 'POST', '/webhooks/retry-deliveries', { mode: 'force' })) as Job
  while (job.state !== 'done') {
    await delay(POLL_MS)
    job = (await callApi(apiUrl, 'GET', `/webhooks/retry-deliveries/${job.id}`)) as Job
  }
  return job.total
}
