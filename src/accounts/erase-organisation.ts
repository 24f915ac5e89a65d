import pLimit from 'p-limit'
import type { DataSource, EntityManager } from 'typeorm'
import { transactLonger } from '../db/connection/database-client.ts'
import { recordAudit } from '../db/queries/audit.ts'
import {
  deleteDeliveries,
  deleteIncidents,
  deleteRowsOf,
  deleteOrganisation,
  findAllWebhookIds,
  findIncidentsOf,
  lockFinalDeliveries,
  settleErased,
  stopForErasure,
  addErased,
  deleteAllWebhooks,
  insertErasure,
  lockErasure,
  NOTHING_ERASED,
} from '../db/queries/erasures.ts'
import { findOrganisation, lockOrganisation, type OrganisationRow } from '../db/queries/organisations.ts'
import { retryBatch } from '../db/connection/connection-errors.ts'
import type { ErasedCounts } from '../db/entities/organisation.ts'
import type { Logger } from '../observability/logger.ts'
import { notFound } from '../problem-error.ts'
import type { ErasureWorkflows } from '../temporal/workflows.ts'
import type { WorkflowTermination } from '../temporal/workflow-progress.ts'
import { callerCachesExpired } from './caller-lookup.ts'
import { operatorInAudit, type Operator } from './operator.ts'

type RequestDependencies = {
  dataSource: DataSource
  erasureWorkflows: ErasureWorkflows
  webhooks: { changed(webhookId: string): void }
  logger: Logger
}

/**
 * Begins to erase an organisation. When this returns, nothing of it is delivered or accepted any more, and to all but the
 * operator it does not exist. Repeating it changes nothing. Throws 404 when there is no such organisation.
 */
export async function requestErasure(
  { dataSource, erasureWorkflows, webhooks, logger }: RequestDependencies,
  operator: Operator,
  organisationId: string,
): Promise<OrganisationRow> {
  const { before, webhookIds } = await dataSource.transaction(async (manager) => {
    await lockOrganisation(manager, organisationId)
    const before = await findOrganisation(manager, organisationId)
    if (before === null) throw notFound('organisation')
    if (before.erasure !== null) return { before, webhookIds: [] }
    await recordAudit(manager, operatorInAudit(operator, organisationId), {
      action: 'organisation.erasure_requested',
    })
    await insertErasure(manager, organisationId)
    return { before, webhookIds: await deleteAllWebhooks(manager, organisationId) }
  })
  if (before.erasure !== null) {
    await callerCachesExpired()
    return before
  }
  for (const id of webhookIds) webhooks.changed(id)
  const { name, requestId } = operator
  logger.info({ event: 'organisation.erasure_requested', organisationId, operator: name, requestId })
  // The sweeper starts the workflow while Temporal is unavailable, and after a crash.
  void erasureWorkflows.start({ organisationId }).catch((error: unknown) => {
    logger.warn({ event: 'organisation.erasure_not_started', organisationId, err: error })
  })
  await callerCachesExpired()
  return (await findOrganisation(dataSource, organisationId)) ?? before
}

export type EraseDependencies = {
  dataSource: DataSource
  logger: Logger
  /** Ends the workflows of deliveries and incidents that are erased. */
  termination: WorkflowTermination
  /** How old an erasure has to be before the organisation itself goes; a default for tests to shorten. */
  minErasureAgeMs?: number
}

/** What one step did. `hasAdvanced`: at least one row was erased, so that the next step may follow at once. */
export type ErasureProgress = { isDone: boolean; hasAdvanced: boolean; erased: ErasedCounts }

/** Rows of one transaction, so that no lock lasts long. */
const BATCH_ROWS = 1_000

/** Workflows to end in one batch. */
const MAX_ENDED = 200
const MAX_CONCURRENT_CALLS = 8

/** Longer than a request may take that was authenticated before the erasure began: 30 s to be received, 10 s to be answered. */
const MIN_ERASURE_AGE_MS = 45_000

/** One transaction of a step. */
type Batch = (manager: EntityManager) => Promise<Partial<ErasedCounts> & { rows: number }>

/**
 * Takes one step of an erasure: one batch of each kind of rows, and at last the organisation itself. The caller repeats it
 * until it is done. Harmless to repeat, and to run twice at once: each batch locks the erasure, and where there is none
 * no webhook is found. Incidents come first, so that no notification is sent; a delivery whose attempt is under way waits for its end.
 */
export async function eraseOrganisation(
  dependencies: EraseDependencies,
  organisationId: string,
  signal: AbortSignal,
): Promise<ErasureProgress> {
  const { dataSource, termination, logger, minErasureAgeMs = MIN_ERASURE_AGE_MS } = dependencies
  const whenUp = <T>(work: () => Promise<T>): Promise<T> => retryBatch(work, signal)
  const limit = pLimit(MAX_CONCURRENT_CALLS)
  let hasAdvanced = false

  async function run(batch: Batch): Promise<void> {
    signal.throwIfAborted()
    const rows = await whenUp(() => runBatch(dataSource, organisationId, batch))
    hasAdvanced ||= rows > 0
  }

  const webhookIds = await whenUp(() => findAllWebhookIds(dataSource, organisationId))
  const incidents = await whenUp(() => findIncidentsOf(dataSource, webhookIds, BATCH_ROWS))
  const running = incidents.filter(({ hasWorkflow }) => hasWorkflow)
  await limit.map(running, ({ id, webhookId }) => termination.ofIncident(webhookId, id))
  await run(async (manager) => {
    const rows = await deleteIncidents(
      manager,
      incidents.map(({ id }) => id),
    )
    return { rows, incidents: rows }
  })

  // Stopped and marked first: whatever breaks before the mark is removed, their workflows are ended again.
  const stopped = await whenUp(() =>
    transactLonger(dataSource, (manager) => stopForErasure(manager, webhookIds, MAX_ENDED)),
  )
  await limit.map(stopped, (id) => termination.ofDelivery(id))
  await whenUp(() => settleErased(dataSource, stopped))
  hasAdvanced ||= stopped.length > 0
  // While more are open, every step would read all of them to find the final ones between them.
  if (stopped.length < MAX_ENDED)
    await run(async (manager) => {
      const ids = await lockFinalDeliveries(manager, webhookIds, BATCH_ROWS)
      return { rows: ids.length, ...(await deleteDeliveries(manager, ids)) }
    })
  await run(async (manager) => {
    const events = await deleteRowsOf(manager, 'event', organisationId, BATCH_ROWS)
    return { rows: events, events }
  })
  await run(async (manager) => {
    const auditEntries = await deleteRowsOf(manager, 'audit_entry', organisationId, BATCH_ROWS)
    return { rows: auditEntries, auditEntries }
  })
  await run(async (manager) => ({
    rows: await deleteRowsOf(manager, 'idempotency_key', organisationId, BATCH_ROWS),
  }))

  const progress = await whenUp(() =>
    transactLonger(dataSource, async (manager) => {
      const erasure = await lockErasure(manager, organisationId)
      if (erasure === null) return { isDone: true, hasAdvanced, erased: NOTHING_ERASED }
      const isDone = !hasAdvanced && (await deleteOrganisation(manager, organisationId, minErasureAgeMs))
      return { isDone, hasAdvanced, erased: erasure.erased }
    }),
  )
  if (progress.isDone) logger.info({ event: 'organisation.erased', organisationId, ...progress.erased })
  return progress
}

/** Runs a batch under the lock of the erasure; returns how many rows it deleted. */
async function runBatch(dataSource: DataSource, organisationId: string, batch: Batch): Promise<number> {
  return transactLonger(dataSource, async (manager) => {
    const erasure = await lockErasure(manager, organisationId)
    if (erasure === null) return 0
    const { rows, ...erased } = await batch(manager)
    if (rows > 0) await addErased(manager, erasure, erased)
    return rows
  })
}
