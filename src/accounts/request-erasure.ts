import type { DataSource } from 'typeorm'
import { recordAudit } from '../db/queries/audit.ts'
import { deleteAllWebhooks, insertErasure } from '../db/queries/erasures.ts'
import { findOrganisation, type OrganisationRow, lockOrganisation } from '../db/queries/organisations.ts'
import { notFound } from '../problem-error.ts'
import type { Logger } from '../observability/logger.ts'
import type { ErasureWorkflows } from '../temporal/job-workflows.ts'
import { callerCachesExpired } from './caller-lookup.ts'
import { operatorInAudit, type Operator } from './operator.ts'

type Dependencies = {
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
  dependencies: Dependencies,
  operator: Operator,
  organisationId: string,
): Promise<OrganisationRow> {
  const { dataSource, logger } = dependencies
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
  if (before.erasure !== null) return before
  for (const id of webhookIds) dependencies.webhooks.changed(id)
  const { name, requestId } = operator
  const fields = { event: 'organisation.erasure_requested', organisationId, operator: name, requestId }
  logger.info(fields, fields.event)
  void start(dependencies, organisationId)
  await callerCachesExpired()
  return (await findOrganisation(dataSource, organisationId)) ?? before
}

/** The sweeper starts the workflow while Temporal is unavailable, and after a crash. */
async function start(
  { erasureWorkflows, logger }: Pick<Dependencies, 'erasureWorkflows' | 'logger'>,
  organisationId: string,
): Promise<void> {
  await erasureWorkflows.start({ organisationId }).catch((error: unknown) => {
    const fields = { event: 'organisation.erasure_not_started', organisationId, err: error }
    logger.warn(fields, fields.event)
  })
}
