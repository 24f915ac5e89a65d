// Hand-written: webhooks of all organisations are found along partial indexes, a bounded number at a time.
import { webhookStatus, type OperatorState } from '../../domain/webhook-status.ts'
import { sql, type Db, type Page } from '../connection/db.ts'
import { listOverviewForOperators, listStatusInputsForOperators, type OverviewRow } from './overview.ts'

/** A webhook with its organisation and what an operator acts on. */
export type OperatorWebhookRow = OverviewRow & {
  organisationId: string
  organisationName: string
  /** Of the latest failed attempt. */
  latestError: string | null
  /** Deliveries whose workflow is paused in Temporal, up to {@link MAX_PAUSED}, and the first of these. */
  paused: number
  pausedSince: Date | null
}

/** Webhooks whose status is determined for one page, or for the overview. */
const MAX_SCANNED = 1_000

const MAX_PAUSED = 10_000

/** Organisations, and webhooks that are disabled, are counted no further. */
const MAX_COUNTED = 100_000

const isBefore = (id: string): string => `(:before::uuid IS NULL OR ${id} < :before)`

/** The ids of the next webhooks that may be in a list, newest first; those of `paused` are found by skipping from one to the next. */
const CANDIDATES: Record<OperatorState, string> = {
  failing: `SELECT webhook_id AS id FROM incident
             WHERE closed_at IS NULL AND ${isBefore('webhook_id')}
             ORDER BY webhook_id DESC LIMIT :maxScanned`,
  degraded: `SELECT id FROM webhook WHERE deleted_at IS NULL AND ${isBefore('id')} ORDER BY id DESC LIMIT :maxScanned`,
  paused: `WITH RECURSIVE paused AS (
             (SELECT webhook_id AS id FROM delivery
               WHERE paused_since IS NOT NULL AND ${isBefore('webhook_id')}
               ORDER BY webhook_id DESC LIMIT 1)
             UNION ALL
             SELECT (SELECT webhook_id FROM delivery WHERE paused_since IS NOT NULL AND webhook_id < paused.id
                      ORDER BY webhook_id DESC LIMIT 1)
               FROM paused WHERE paused.id IS NOT NULL
           ) SELECT id FROM paused WHERE id IS NOT NULL LIMIT :maxScanned`,
  disabled: `SELECT id FROM webhook WHERE deleted_at IS NULL AND NOT enabled AND ${isBefore('id')}
             ORDER BY id DESC LIMIT :maxScanned`,
}

/** Returns a page of the webhooks of all organisations in this state. It may be short, or empty, before the last one. */
export async function listOperatorWebhooks(
  db: Db,
  { state, before, limit }: { state: OperatorState; before: string | null; limit: number },
): Promise<Page<OperatorWebhookRow>> {
  const byStatus = state === 'failing' || state === 'degraded'
  const maxScanned = byStatus ? MAX_SCANNED : limit + 1
  const ids = await sql(CANDIDATES[state], { before, maxScanned }).ids(db)
  const fitting = byStatus ? await withStatus(db, ids, state) : ids
  const shown = fitting.slice(0, limit)
  const rest = ids.length === maxScanned ? ids.at(-1) : undefined
  const last = (fitting.length > limit ? shown.at(-1) : rest) ?? null
  return { page: await readWebhooks(db, shown), last }
}

/** Returns those of the webhooks that have this status, in their order. */
async function withStatus(db: Db, ids: readonly string[], status: 'failing' | 'degraded'): Promise<string[]> {
  const rows = await listStatusInputsForOperators(db, ids)
  const found = new Set(rows.filter((inputs) => webhookStatus(inputs) === status).map(({ id }) => id))
  return ids.filter((id) => found.has(id))
}

async function readWebhooks(db: Db, ids: readonly string[]): Promise<OperatorWebhookRow[]> {
  const rows = await listOverviewForOperators(db, ids)
  const found = await sql(
    `SELECT webhook.id, organisation.id AS "organisationId", organisation.name AS "organisationName", paused.*,
            (SELECT error FROM attempt WHERE webhook_id = webhook.id AND outcome = 'failed'
              ORDER BY started_at DESC LIMIT 1) AS "latestError"
       FROM webhook
       JOIN organisation ON organisation.id = webhook.organisation_id
      CROSS JOIN LATERAL (
         SELECT count(*)::int AS paused, min(paused_since) AS "pausedSince"
           FROM (SELECT paused_since FROM delivery WHERE webhook_id = webhook.id AND paused_since IS NOT NULL
                  LIMIT ${MAX_PAUSED}) first_paused
       ) paused
      WHERE webhook.id = ANY(:ids::uuid[])`,
    { ids },
  ).rows<Omit<OperatorWebhookRow, keyof OverviewRow> & { id: string }>(db)
  const byId = new Map(found.map((row) => [row.id, row]))
  return rows.flatMap((row) => {
    const further = byId.get(row.id)
    return further === undefined ? [] : [{ ...row, ...further }]
  })
}

/** Counts over all organisations. `isCapped`: more incidents are open than were read. */
export type OperatorCounts = {
  organisations: number
  failing: number
  paused: number
  disabled: number
  held: number
  isCapped: boolean
}

export async function countForOperators(db: Db): Promise<OperatorCounts> {
  const ids = await sql(CANDIDATES.failing, { before: null, maxScanned: MAX_SCANNED }).ids(db)
  const counts = await sql(
    `SELECT (SELECT count(*)::int FROM (SELECT 1 FROM organisation LIMIT ${MAX_COUNTED}) o) AS organisations,
            (SELECT count(*)::int FROM (${CANDIDATES.paused}) p) AS paused, disabled.*
       FROM (SELECT count(*)::int AS disabled, count(held_at)::int AS held
               FROM (SELECT held_at FROM webhook WHERE deleted_at IS NULL AND NOT enabled LIMIT ${MAX_COUNTED}) w
            ) disabled`,
    { before: null, maxScanned: MAX_SCANNED },
  ).one<Omit<OperatorCounts, 'failing' | 'isCapped'>>(db)
  const failing = (await withStatus(db, ids, 'failing')).length
  return { ...counts, failing, isCapped: ids.length === MAX_SCANNED }
}
