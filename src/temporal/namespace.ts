import type { NativeConnection } from '@temporalio/worker'
import {
  withCallTimeout,
  isNotPermitted,
  hasGrpcCode,
  isAccessRefused,
  isTemporalUnavailable,
} from './calls.ts'
import { randomUUID } from 'node:crypto'
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import type { Client } from '@temporalio/client'
import type { Logger } from '../observability/logger.ts'

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

type Link = { connection: NativeConnection; client: Client }

/** Checks the namespace and registers what is missing, also when Temporal returns without its data. */
export type NamespaceGuard = {
  /** True while the namespace has all that a start needs, as far as known. */
  isComplete(): boolean
  /**
   * Checks that the namespace is still the same; in intervals, or at once with `isRefused`, also registers what is missing.
   * One check at a time. Throws while Temporal is unavailable or the namespace does not exist.
   */
  check(link: Link, isRefused?: boolean): Promise<void>
  /** True while Temporal may still refuse search attributes that were just registered. */
  isRegistrationRecent(): boolean
}

/** What an operator removes is registered again after this interval. */
const SETUP_INTERVAL_MS = 15_000

/** Temporal caches the search attributes of a namespace for this long. */
const REGISTRATION_DELAY_MS = 15_000

export type NamespaceGuardOptions = {
  namespace: string
  logger: Logger
  /**
   * Sets up what no start needs, such as schedules. `isNew` is false when that was done before. An error is logged, and
   * the call repeated.
   */
  onComplete: (client: Client, isNew: boolean) => Promise<void>
  /** Called when the namespace, and so every workflow, was lost. */
  onDataLost: () => Promise<void>
}

export function createNamespaceGuard(options: NamespaceGuardOptions): NamespaceGuard {
  const { namespace, logger, onComplete, onDataLost } = options
  let knownId: string | null = null
  let isComplete = false
  let isSetUp = false
  let isReported = false
  let checkedAtMs = -Infinity
  let registeredAtMs = -Infinity
  let latest: Promise<void> = Promise.resolve()

  async function check({ connection, client }: Link, isRefused: boolean): Promise<void> {
    const found = await readNamespaceId(connection, namespace).catch((error: unknown) => {
      // Temporal answers: the namespace does not exist.
      if (!isTemporalUnavailable(error)) isComplete = false
      throw error
    })
    // Without the right to read it, it is the one that was known.
    const id = found === '' ? (knownId ?? '') : found
    const isKnown = isComplete && id === knownId && !isRefused
    if (isKnown && performance.now() - checkedAtMs < SETUP_INTERVAL_MS) return
    if (knownId !== null && id !== knownId) {
      isComplete = isSetUp = false
      logger.warn({ event: 'temporal.data_lost', namespace })
      await register(connection)
      await onDataLost()
    } else await register(connection)
    knownId = id
    isComplete = true
    checkedAtMs = performance.now()
    void setUp(client)
  }

  async function register(connection: NativeConnection): Promise<void> {
    try {
      const missing = await registerSearchAttributes(connection, namespace)
      if (missing.length === 0) return
      registeredAtMs = performance.now()
      logger.info({ event: 'temporal.search_attributes_registered', missing })
    } catch (error) {
      if (!isNotPermitted(error)) throw error
      // Without the permission, an operator has to register them. Logged once.
      if (!isReported)
        logger.warn({ event: 'temporal.registration_refused', needed: SEARCH_ATTRIBUTE_NAMES, err: error })
      isReported = true
    }
  }

  async function setUp(client: Client): Promise<void> {
    try {
      await onComplete(client, !isSetUp)
      isSetUp = true
    } catch (error) {
      logger.warn({ event: 'temporal.setup_failed', err: error })
    }
  }

  return {
    isComplete: () => isComplete,
    isRegistrationRecent: () => performance.now() - registeredAtMs < REGISTRATION_DELAY_MS,
    check(link, isRefused = false) {
      const next = latest.catch(() => undefined).then(() => check(link, isRefused))
      latest = next
      return next
    },
  }
}
