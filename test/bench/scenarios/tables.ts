import { findOverdue, findOwedWorkflows, findUnstarted } from '../../../src/db/queries/due-deliveries.ts'
import { purge } from '../../../src/retention/purge.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'
import { DARK, drawPanels, GREEN, LIGHT, VIOLET, type Panel } from '../../helpers/picture.ts'
import { writeHistory } from '../growth/history.ts'
import { measureLoad } from '../growth/measure-load.ts'
import { databaseMb } from '../measure/database-usage.ts'
import { distribution, rounded } from '../measure/distribution.ts'
import { callApi } from '../organisation.ts'
import type { Row, Scenario } from '../scenario.ts'
import { HOOK, type Stage } from '../stage.ts'

const SIZES = [100_000, 1_000_000, 5_000_000, 10_000_000]
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

/** The schedule of Posthorn itself purges none of them at the full hour. */
const KEPT = { RETENTION_COMPLETED_DAYS: '3650', RETENTION_FAILED_DAYS: '3650' }

/** Of a burst: what a delivery costs. */
const COSTS = ['perSecond', 'acknowledgedP50Ms', 'posthornMs', 'postgresMs', 'walBytes']

/** Bursts of the same webhook's events. */
const PUBLISHED = { ...HOOK, fanOut: 1, share: 1 }

/** What one size has, by the words of the table. */
type Column = { size: number; figures: Readonly<Record<string, number>> }

const line = (name: string, colour: string, what = `${name}, ms`): Panel<Column>['series'][number] => ({
  name,
  colour,
  value: ({ figures }) => figures[what] ?? null,
})

const PANELS: readonly Panel<Column>[] = [
  {
    title: 'first pages, ms',
    series: [
      line('list of webhooks', DARK),
      line('deliveries of a webhook', LIGHT),
      line('those that failed', GREEN, '… that failed, ms'),
      line('events', VIOLET),
    ],
  },
  {
    title: 'searches that find nothing, ms',
    series: [
      line('by a key', DARK, '… of a key that none has, ms'),
      line('by a word', LIGHT, '… whose text has a word, ms'),
    ],
  },
  {
    title: 'charts, ms',
    series: [
      line('statistics', DARK, 'statistics of the organisation, ms'),
      line('activity of all, 24 h', LIGHT, 'activity of all webhooks, 24 h, ms'),
      line('of one webhook, 7 d', GREEN, 'activity of a webhook, 7 d, ms'),
    ],
  },
  {
    title: 'processor time for a delivery, ms',
    series: [
      line('Posthorn', DARK, 'posthornMs of a delivery'),
      line('PostgreSQL', LIGHT, 'postgresMs of a delivery'),
    ],
  },
  { title: 'sweep pass with nothing to do, ms', series: [line('sweep pass with nothing to do', DARK)] },
  {
    title: 'purged deliveries a second',
    series: [line('purge', DARK, 'purged deliveries a second')],
  },
  { title: 'size of the database, MB', series: [line('with indexes', DARK, 'database, MB')] },
]

/**
 * A row for each read, in ms the median of some repetitions, for what a delivery costs, and for the purge; a column for
 * each size. Best with FIRST_ATTEMPT=direct, in which a delivery's cost is that of its statements.
 */
export const tables: Scenario = {
  letter: 'q',
  name: 'tables',
  title: 'what reads, deliveries, sweeps and purges cost as completed deliveries collect',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [HOOK], env: KEPT })
    const columns: Column[] = []
    const problems: string[] = []
    const history = { webhookId: stage.webhookIds[0]!, url: `${bench.receiver.url}${HOOK.path}` }
    let before = 0
    for (const size of bench.quick ? QUICK_SIZES : SIZES) {
      bench.say(`${size - before} completed deliveries, written into the tables`)
      const old = bench.quick ? QUICK_OLD_ROWS : OLD_ROWS
      await writeHistory(stage.dataSource, { ...history, from: OLD_FROM, to: OLD_FROM + old })
      await writeHistory(stage.dataSource, { ...history, from: before, to: size })
      await stage.dataSource.query('CHECKPOINT')
      bench.say('measured')
      const reads = await readTimes(stage)
      const load = await measureLoad(bench, stage, PUBLISHED)
      problems.push(...load.problems)
      columns.push({
        size,
        figures: { ...reads, ...loadFigures(load.row), ...(await purgeRate(stage, old)) },
      })
      before = size
    }
    await stage.close()
    const rows = Object.keys(columns[0]!.figures).map((what) => ({
      what,
      ...Object.fromEntries(columns.map(({ size, figures }) => [`at${size}`, figures[what]!])),
    }))
    return { rows, problems, picture: draw(columns) }
  },
}

/** The sizes grow by factors, and so does the axis. */
function draw(columns: readonly Column[]): string {
  const [first, last] = [columns[0]!.size, columns.at(-1)!.size]
  const shareOf = ({ size }: Column): number => Math.log(size / first) / Math.log(last / first)
  const ticks = columns.map((column) => ({
    share: shareOf(column),
    label: column.size.toLocaleString('en', { notation: 'compact' }),
  }))
  return drawPanels('As tables grow', PANELS, columns, { shareOf, ticks, label: 'completed deliveries' })
}

function loadFigures(row: Row): Record<string, number> {
  return Object.fromEntries(COSTS.map((name) => [`${name} of a delivery`, Number(row[name])]))
}

function reading(pathOf: (webhookId: string) => string): Step {
  return ({ apiUrl, webhookIds }) => callApi(apiUrl, 'GET', pathOf(webhookIds[0]!))
}

async function readTimes(stage: Stage): Promise<Record<string, number>> {
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

async function purgeRate({ dataSource }: Stage, rows: number): Promise<Record<string, number>> {
  const startedAt = performance.now()
  const signal = new AbortController().signal
  const { deliveries } = await purge({ dataSource, logger: silentLogger }, LIMITS, signal)
  if (deliveries !== rows) throw new Error(`purged ${deliveries} of ${rows} deliveries`)
  return {
    'purged deliveries a second': rounded((rows / (performance.now() - startedAt)) * 1_000),
    'database, MB': await databaseMb(dataSource),
  }
}
