import { findOverdue, findOwedWorkflows, findUnstarted } from '../../../src/db/queries/due-deliveries.ts'
import { purge } from '../../../src/retention/purge.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { writeHistory } from '../growth/history.ts'
import { databaseMb } from '../measure/database-usage.ts'
import { distribution, rounded } from '../measure/distribution.ts'
import { callApi } from '../organisation.ts'
import type { Row, Scenario } from '../scenario.ts'
import { HOOK, type Stage } from '../stage.ts'

const SIZES = [100_000, 1_000_000, 5_000_000]
const QUICK_SIZES = [1_000, 10_000]
const REPEATS = 15

/** Rows older than any limit, from this number on, so that there is something to purge at each size. */
const OLD_FROM = 30_000_000
const OLD_ROWS = 20_000
const QUICK_OLD_ROWS = 1_000
const LIMITS = { completedDays: 60, failedDays: 60, auditDays: 400 }

const SWEEP = { limit: 100, defaultRoom: 100, rooms: [] }

type Step = (stage: Stage) => Promise<unknown>

/** What people, platforms and the process itself read most; of lists the first page. */
const READS: Record<string, Step> = {
  'list of webhooks': reading(() => '/webhooks/overview'),
  'activity of all webhooks, 24 h': reading(() => '/webhooks/activity?range=24h'),
  'statistics of the organisation': reading(() => '/webhooks/delivery-stats'),
  'recent deliveries': reading(() => '/webhooks/recent-deliveries'),
  'deliveries of a webhook': reading((id) => `/webhooks/${id}/deliveries`),
  '… that failed': reading((id) => `/webhooks/${id}/deliveries?state=failed`),
  '… of a key that none has': reading((id) => `/webhooks/${id}/deliveries?eventKey=invoice:created`),
  '… whose text has a word': reading((id) => `/webhooks/${id}/deliveries?search=nowhere`),
  'activity of a webhook, 7 d': reading((id) => `/webhooks/${id}/activity?range=7d`),
  'incidents of a webhook': reading((id) => `/webhooks/${id}/incidents`),
  events: reading(() => '/events'),
  'sweep pass with nothing to do': async ({ dataSource: { manager } }) => {
    await findUnstarted(manager, SWEEP)
    await findOverdue(manager, SWEEP.limit)
    await findOwedWorkflows(manager, SWEEP.limit)
  },
}

/** Medians of some repetitions, in ms, a row for each read and a column for each size. */
export const tables: Scenario = {
  letter: 'q',
  name: 'tables',
  title: 'what reads, sweeps and purges cost as completed deliveries collect',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [HOOK] })
    const columns: [size: number, figures: Row][] = []
    const history = { webhookId: stage.webhookIds[0]!, url: `${bench.receiver.url}${HOOK.path}` }
    let before = 0
    for (const size of bench.quick ? QUICK_SIZES : SIZES) {
      bench.say(`${size - before} completed deliveries, written into the tables`)
      const old = bench.quick ? QUICK_OLD_ROWS : OLD_ROWS
      await writeHistory(stage.dataSource, { ...history, from: OLD_FROM, to: OLD_FROM + old })
      await writeHistory(stage.dataSource, { ...history, from: before, to: size })
      await stage.dataSource.query('CHECKPOINT')
      bench.say('measured')
      columns.push([size, { ...(await readTimes(stage)), ...(await purgeRate(stage, old)) }])
      before = size
    }
    await stage.close()
    const whats = Object.keys(columns[0]![1])
    const rows = whats.map((what) => ({
      what,
      ...Object.fromEntries(columns.map(([size, figures]) => [`at${size}`, figures[what]!])),
    }))
    return { rows, problems: [] }
  },
}

function reading(pathOf: (webhookId: string) => string): Step {
  return ({ apiUrl, webhookIds }) => callApi(apiUrl, 'GET', pathOf(webhookIds[0]!))
}

async function readTimes(stage: Stage): Promise<Row> {
  const figures: Record<string, number> = {}
  for (const [what, read] of Object.entries(READS)) {
    const times: number[] = []
    while (times.length < REPEATS) {
      const startedAt = performance.now()
      await read(stage)
      times.push(performance.now() - startedAt)
    }
    figures[`${what}, ms`] = distribution(times).p50
  }
  return figures
}

async function purgeRate({ dataSource }: Stage, rows: number): Promise<Row> {
  const startedAt = performance.now()
  const signal = new AbortController().signal
  const { deliveries } = await purge({ dataSource, logger: silentLogger }, LIMITS, signal)
  if (deliveries !== rows) throw new Error(`purged ${deliveries} of ${rows} deliveries`)
  return {
    'purged deliveries a second': rounded((rows / (performance.now() - startedAt)) * 1_000),
    'database, MB': await databaseMb(dataSource),
  }
}
