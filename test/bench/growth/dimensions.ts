import { databaseMb } from '../measure/database-usage.ts'
import { createWebhook } from '../organisation.ts'
import type { Bench, Row } from '../scenario.ts'
import { HOOK, type Stage, type WebhookPlan } from '../stage.ts'
import { writeWaitingRows } from '../waiting-deliveries.ts'
import { tidy, writeHistory } from './history.ts'

/** What is published, and how often it comes back. */
export type Load = {
  eventKey: string
  /** Where the POSTs go. */
  path: string
  /** Webhooks that are subscribed to the key. */
  fanOut: number
  bodyBytes?: number
  /** Of the usual number of events: some take long. */
  share: number
}

/** One size of what grows. */
type Level = {
  size: number
  /** Adds to the stage what the size before lacks. */
  grow?: (bench: Bench, stage: Stage) => Promise<void>
  load: Load
  /** Further columns of its row, once it has grown. */
  describe?: (stage: Stage) => Promise<Row>
}

/** One thing that grows while the rest stays as it is: its sizes follow each other on one stage. */
export type Dimension = {
  title: string
  /** The column of the size. */
  column: string
  webhooks: readonly WebhookPlan[]
  levels: (quick: boolean) => Level[]
}

const USUAL: Load = { ...HOOK, fanOut: 1, share: 1 }
/** Its webhook gets nothing while it is measured. */
const OTHER = { path: '/ok/other', eventKey: 'invoice:created' }

const HISTORY = [0, 100_000, 1_000_000]
const QUICK_HISTORY = [0, 1_000, 10_000]
const WEBHOOKS = [1, 10, 100]
const QUICK_WEBHOOKS = [1, 3, 10]
const WAITING = [0, 5_000, 50_000]
const QUICK_WAITING = [0, 50, 500]

/** Completed deliveries with their events and attempts, all of the webhook that is measured. */
const history: Dimension = {
  title: 'completed deliveries in the tables',
  column: 'completed',
  webhooks: [HOOK],
  levels: (quick) =>
    sizes(quick ? QUICK_HISTORY : HISTORY).map(({ size, before }) => ({
      size,
      async grow(bench, { dataSource, webhookIds }) {
        if (size > before) bench.say(`${size - before} completed deliveries, written into the tables`)
        const url = `${bench.receiver.url}${HOOK.path}`
        await writeHistory(dataSource, { webhookId: webhookIds[0]!, url, from: before, to: size })
      },
      load: USUAL,
      describe: async ({ dataSource }) => ({ databaseMb: await databaseMb(dataSource) }),
    })),
}

/** Of which one is subscribed to what is published. */
const webhooks: Dimension = {
  title: 'webhooks of the organisation, one of which matches',
  column: 'webhooks',
  webhooks: [HOOK],
  levels: (quick) =>
    sizes(quick ? QUICK_WEBHOOKS : WEBHOOKS, 1).map(({ size, before }) => ({
      size,
      async grow(bench, { apiUrl }) {
        for (let made = before; made < size; made++)
          await createWebhook(apiUrl, `${bench.receiver.url}${OTHER.path}`, OTHER.eventKey)
      },
      load: USUAL,
    })),
}

const FAN_OUT = [
  { path: '/ok/fan-1', eventKey: 'customer:created', fanOut: 1, share: 1 },
  { path: '/ok/fan-5', eventKey: 'customer:updated', fanOut: 5, share: 0.4 },
  { path: '/ok/fan-20', eventKey: 'customer:deleted', fanOut: 20, share: 0.2 },
]

/** All webhooks are there from the start; what differs is how many are subscribed to what is published. */
const fanOut: Dimension = {
  title: 'webhooks that match an event',
  column: 'matching',
  webhooks: FAN_OUT.flatMap((load) => Array.from({ length: load.fanOut }, () => load)),
  levels: () => FAN_OUT.map((load) => ({ size: load.fanOut, load })),
}

/** Of another webhook: one with so many has an open incident, and its first attempts are Temporal's. */
const waiting: Dimension = {
  title: 'deliveries that wait for their eighth attempt, of another webhook',
  column: 'waiting',
  webhooks: [HOOK, OTHER],
  levels: (quick) =>
    sizes(quick ? QUICK_WAITING : WAITING).map(({ size, before }) => ({
      size,
      async grow(bench, { dataSource, webhookIds }) {
        if (size > before) bench.say(`${size - before} waiting deliveries, written into the tables`)
        await writeWaitingRows(dataSource, { webhookId: webhookIds[1]!, count: size - before })
        await tidy(dataSource)
      },
      load: USUAL,
    })),
}

const payload: Dimension = {
  title: 'payload size, of text that hardly compresses',
  column: 'kilobytes',
  webhooks: [HOOK],
  levels: () =>
    [
      { size: 1, share: 1 },
      { size: 16, share: 0.5 },
      { size: 128, share: 0.2 },
    ].map(({ size, share }) => ({ size, load: { ...USUAL, bodyBytes: size * 1_024, share } })),
}

export const DIMENSIONS: readonly Dimension[] = [history, webhooks, fanOut, waiting, payload]

/** Each with the one before it; the first starts from what a stage has of it. */
function sizes(of: readonly number[], atFirst = 0): { size: number; before: number }[] {
  return of.map((size, index) => ({ size, before: of[index - 1] ?? atFirst }))
}
