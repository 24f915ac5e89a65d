import { ORGANISATION } from '../organisation.ts'
import type { Bench } from '../scenario.ts'
import { HOOK, type Stage, type WebhookPlan } from '../stage.ts'
import { writeWaitingRows } from '../waiting-deliveries.ts'
import { tidy } from './history.ts'

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

const WEBHOOKS = [50, 1_000, 10_000]
const QUICK_WEBHOOKS = [50, 100]
const PER_ORGANISATION = 50
const WAITING = [0, 10_000, 100_000]
const QUICK_WAITING = [0, 50, 500]

const INSERT_ORGANISATIONS = `
  INSERT INTO organisation (id, name, email, time_zone)
  SELECT DISTINCT $1 || '_' || place / $2::int, 'Other', 'info@test.example', 'Europe/Brussels'
    FROM generate_series($3::int, $4::int - 1) AS place WHERE place >= $2
  ON CONFLICT DO NOTHING`

const INSERT_WEBHOOKS = `
  INSERT INTO webhook (id, organisation_id, url, subscribed_event_keys, enabled)
  SELECT uuidv7(), CASE WHEN place < $2::int THEN $1 ELSE $1 || '_' || place / $2 END, $5, $6::text[], true
    FROM generate_series($3::int, $4::int - 1) AS place`

/** Fifty of each organisation, straight into the database. */
const webhooks: Dimension = {
  title: `webhooks, ${PER_ORGANISATION} of each organisation, one of which matches`,
  column: 'webhooks',
  webhooks: [HOOK],
  levels: (quick) =>
    sizes(quick ? QUICK_WEBHOOKS : WEBHOOKS, 1).map(({ size, before }) => ({
      size,
      async grow(bench, { dataSource }) {
        const url = `${bench.receiver.url}${OTHER.path}`
        const places = [ORGANISATION.id, PER_ORGANISATION, before, size]
        await dataSource.query(INSERT_ORGANISATIONS, places)
        await dataSource.query(INSERT_WEBHOOKS, [...places, url, [OTHER.eventKey]])
      },
      load: USUAL,
    })),
}

/** Of events for more than 500 webhooks two are committed at a time, and others refused: a burst is none of these. */
const FAN_OUT = [
  { path: '/ok/fan-1', eventKey: 'customer:created', fanOut: 1, share: 1 },
  { path: '/ok/fan-10', eventKey: 'customer:updated', fanOut: 10, share: 0.2 },
  { path: '/ok/fan-100', eventKey: 'customer:deleted', fanOut: 100, share: 0.02 },
  { path: '/ok/fan-400', eventKey: 'invoice:created', fanOut: 400, share: 0.005 },
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

export const DIMENSIONS: readonly Dimension[] = [webhooks, fanOut, waiting, payload]

/** Each with the one before it; the first starts from what a stage has of it. */
function sizes(of: readonly number[], atFirst = 0): { size: number; before: number }[] {
  return of.map((size, index) => ({ size, before: of[index - 1] ?? atFirst }))
}
