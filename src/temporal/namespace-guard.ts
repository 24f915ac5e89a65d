import type { Client } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import type { Logger } from '../observability/logger.ts'
import { isTemporalUnavailable, isNotPermitted } from './calls.ts'
import { SEARCH_ATTRIBUTE_NAMES, readNamespaceId, registerSearchAttributes } from './namespace.ts'

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
    const id = await readNamespaceId(connection, namespace).catch((error: unknown) => {
      // Temporal answers: the namespace does not exist.
      if (!isTemporalUnavailable(error)) isComplete = false
      throw error
    })
    const isKnown = isComplete && id === knownId && !isRefused
    if (isKnown && performance.now() - checkedAtMs < SETUP_INTERVAL_MS) return
    if (knownId !== null && id !== knownId) {
      isComplete = isSetUp = false
      logger.warn({ event: 'temporal.data_lost', namespace }, 'temporal.data_lost')
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
      logger.info(
        { event: 'temporal.search_attributes_registered', missing },
        'temporal.search_attributes_registered',
      )
    } catch (error) {
      if (!isNotPermitted(error)) throw error
      // Without the permission, an operator has to register them. Logged once.
      if (!isReported)
        logger.warn(
          { event: 'temporal.registration_refused', needed: SEARCH_ATTRIBUTE_NAMES, err: error },
          'temporal.registration_refused',
        )
      isReported = true
    }
  }

  async function setUp(client: Client): Promise<void> {
    try {
      await onComplete(client, !isSetUp)
      isSetUp = true
    } catch (error) {
      logger.warn({ event: 'temporal.setup_failed', err: error }, 'temporal.setup_failed')
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
