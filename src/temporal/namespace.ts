import type { NativeConnection } from '@temporalio/worker'
import { withCallTimeout, isNotPermitted, hasGrpcCode, isAccessRefused } from './calls.ts'
import { randomUUID } from 'node:crypto'
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'

/** `INDEXED_VALUE_TYPE_KEYWORD` of temporal.api.enums.v1.IndexedValueType. */
const KEYWORD = 2

/** A process that starts, and a probe, wait for these. */
const READ_TIMEOUT_MS = 2_000

/** A connection of a worker, or of a client alone. */
export type TemporalConnection = Pick<
  NativeConnection,
  'withDeadline' | 'workflowService' | 'operatorService'
>

/**
 * Returns the id of the namespace: another id than before means that its data is lost. Empty without the permission to
 * read it. Throws while Temporal is unavailable, and when there is no such namespace.
 */
export async function readNamespaceId(connection: TemporalConnection, namespace: string): Promise<string> {
  try {
    const described = await withCallTimeout(
      connection,
      () => connection.workflowService.describeNamespace({ namespace }),
      READ_TIMEOUT_MS,
    )
    return described.namespaceInfo?.id ?? ''
  } catch (error) {
    if (isNotPermitted(error)) return ''
    throw error
  }
}

/**
 * Registers our search attributes that are missing in the namespace, and returns their names. Without them every start is
 * refused. Idempotent. Throws without the permission to list or register them.
 */
export async function registerSearchAttributes(
  connection: TemporalConnection,
  namespace: string,
): Promise<string[]> {
  return withCallTimeout(connection, async () => {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    const missing = SEARCH_ATTRIBUTE_NAMES.filter((name) => !(name in customAttributes))
    if (missing.length === 0) return []
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
    })
    return missing
  })
}

/**
 * Returns which of our search attributes the namespace lacks, and which have another type than Keyword. Throws without
 * the permission to list them.
 */
export async function findSearchAttributeProblems(
  connection: TemporalConnection,
  namespace: string,
): Promise<{ missing: string[]; mistyped: string[] }> {
  const { customAttributes } = await withCallTimeout(
    connection,
    () => connection.operatorService.listSearchAttributes({ namespace }),
    READ_TIMEOUT_MS,
  )
  const missing = SEARCH_ATTRIBUTE_NAMES.filter((name) => !(name in customAttributes))
  const present = SEARCH_ATTRIBUTE_NAMES.filter((name) => name in customAttributes)
  return { missing, mistyped: present.filter((name) => Number(customAttributes[name]) !== KEYWORD) }
}

/**
 * Returns whether this process may write in the namespace. Signals a workflow that does not exist, which changes nothing:
 * Temporal checks the permission first. Throws while Temporal is unavailable.
 */
export async function mayWrite(connection: TemporalConnection, namespace: string): Promise<boolean> {
  try {
    await withCallTimeout(connection, () =>
      connection.workflowService.signalWorkflowExecution({
        namespace,
        workflowExecution: { workflowId: `doctor/${randomUUID()}` },
        signalName: 'stop',
      }),
    )
    return true
  } catch (error) {
    if (hasGrpcCode(error, 'NOT_FOUND')) return true
    if (isAccessRefused(error)) return false
    throw error
  }
}

/** The search attributes by which operators find deliveries in the Temporal UI. All are keywords. */
export const SEARCH_ATTRIBUTE_NAMES = ['OrganisationId', 'WebhookId', 'EventKey', 'DeliveryState'] as const

/** The typed keys for workflow starts. `DeliveryState` is set by the workflow, once it waits. */
export const searchAttributes = {
  organisationId: defineSearchAttributeKey('OrganisationId', SearchAttributeType.KEYWORD),
  webhookId: defineSearchAttributeKey('WebhookId', SearchAttributeType.KEYWORD),
  eventKey: defineSearchAttributeKey('EventKey', SearchAttributeType.KEYWORD),
}
