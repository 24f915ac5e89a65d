import type { Client } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import type { Logger } from '../logger.ts'
import { isEngineAway } from './engine-away.ts'
import { isNotPermitted, readNamespaceId, registerSearchAttributes } from './namespace.ts'

type Link = { connection: NativeConnection; client: Client }

/** Keeps the namespace as Posthorn needs it, also when Temporal comes back without its data. */
export type NamespaceGuard = {
  /** True once the namespace was found with all that a start needs, and until it is known to lack something. */
  isComplete(): boolean
  /**
   * Asks whether the namespace is still the same one, and from time to time, or at once with `isRefused`, whether it
   * lacks something; sets that up. One check at a time. Throws while Temporal is away or the namespace is not there.
   */
  check(link: Link, isRefused?: boolean): Promise<void>
  /** Search attributes were registered so lately that Temporal may still refuse them. */
  wasCompletedLately(): boolean
}

/** What somebody removed by hand is set up again after that. */
const SET_UP_INTERVAL_MS = 15_000

/** Temporal caches which search attributes a namespace has. */
const REGISTRATION_DELAY_MS = 15_000

export type NamespaceGuardOptions = {
  namespace: string
  logger: Logger
  /**
   * Sets up what no start needs, such as schedules. `isNew` is false where the namespace was seen complete before, so
   * that looking for what is missing is enough. A failure is logged, and tried again.
   */
  onComplete: ((client: Client, isNew: boolean) => Promise<void>) | null
  /** Every workflow that this process knew is gone. */
  onDataLost: (() => Promise<void>) | null
}

export function createNamespaceGuard(options: NamespaceGuardOptions): NamespaceGuard {
  const { namespace, logger, onComplete, onDataLost } = options
  let knownId: string | null = null
  let isComplete = false
  let isDoneBefore = false
  let isReported = false
  let checkedAtMs = -Infinity
  let registeredAtMs = -Infinity
  let latest: Promise<void> = Promise.resolve()

  async function check({ connection, client }: Link, isRefused: boolean): Promise<void> {
    const id = await readNamespaceId(connection, namespace).catch((error: unknown) => {
      // It answers, and the namespace is not there.
      if (!isEngineAway(error)) isComplete = false
      throw error
    })
    const isKnown = isComplete && id === knownId && !isRefused
    if (isKnown && performance.now() - checkedAtMs < SET_UP_INTERVAL_MS) return
    if (knownId !== null && id !== knownId) {
      isComplete = isDoneBefore = false
      logger.warn({ event: 'temporal.data_lost', namespace }, 'temporal.data_lost')
      await register(connection)
      await onDataLost?.()
    } else await register(connection)
    knownId = id
    isComplete = true
    checkedAtMs = performance.now()
    void setUpOthers(client)
  }

  async function register(connection: NativeConnection): Promise<void> {
    try {
      const missing = await registerSearchAttributes(connection, namespace)
      if (missing.length === 0) return
      registeredAtMs = performance.now()
      logger.info({ event: 'temporal.search_attributes', missing }, 'temporal.search_attributes')
    } catch (error) {
      if (!isNotPermitted(error)) throw error
      // Whoever may not register them relies on somebody who did. Said once.
      if (!isReported)
        logger.warn({ event: 'engine.search_attributes', err: error }, 'engine.search_attributes')
      isReported = true
    }
  }

  async function setUpOthers(client: Client): Promise<void> {
    try {
      await onComplete?.(client, !isDoneBefore)
      isDoneBefore = true
    } catch (error) {
      logger.warn({ event: 'engine.set_up', err: error }, 'engine.set_up')
    }
  }

  return {
    isComplete: () => isComplete,
    wasCompletedLately: () => performance.now() - registeredAtMs < REGISTRATION_DELAY_MS,
    check(link, isRefused = false) {
      const next = latest.catch(() => undefined).then(() => check(link, isRefused))
      latest = next
      return next
    },
  }
}
