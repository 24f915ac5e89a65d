import { setTimeout as delay } from 'node:timers/promises'
import type { DatabaseClock } from '../../db/database-clock.ts'
import type { OverdueDelivery } from '../../db/queries/recovery.ts'
import { nextAttempt } from '../../domain/attempt-outcome.ts'
import type { Logger } from '../../observability/logger.ts'
import type { Shutdown } from '../../shutdown.ts'
import type { DeliveryWorkflows } from '../../temporal/delivery-workflows.ts'
import type { MakeAttempt } from '../attempt/attempt-request.ts'

/** Makes overdue attempts in this process (`direct`): most succeed, and need no workflow any more. */
export type OverdueAttempts = {
  /**
   * Makes the next attempt. Resolves to true at its end, or sooner where its POST is slow; to false where the workflow is
   * to make it: the attempt is not due, no slot of the endpoint is free soon, or it could not be made. Throws while stopping.
   */
  make(delivery: OverdueDelivery): Promise<boolean>
  /** Returns when no attempt is in flight. */
  stop(): Promise<void>
}

/** A POST that takes longer no longer delays the pass of the sweeper. */
const SLOW_POST_MS = 500

/** Attempts in flight; the workflows make further ones. */
const MAX_IN_FLIGHT = 64

export type OverdueAttemptDependencies = {
  makeAttempt: MakeAttempt
  workflows: Pick<DeliveryWorkflows, 'start'>
  clock: Pick<DatabaseClock, 'nowMs'>
  logger: Logger
  shutdown: Pick<Shutdown, 'stopping' | 'cutOff'>
}

export function createOverdueAttempts(dependencies: OverdueAttemptDependencies): OverdueAttempts {
  const { makeAttempt, workflows, clock, logger, shutdown } = dependencies
  const inFlight = new Set<Promise<boolean>>()

  function mayMake({ nextAttemptAt, retryRequested }: OverdueDelivery): boolean {
    const isDue = nextAttemptAt === null || nextAttemptAt.getTime() <= clock.nowMs()
    return isDue && !retryRequested && inFlight.size < MAX_IN_FLIGHT
  }

  /** A workflow that is only late finds the attempt claimed or recorded. */
  async function makeNext(delivery: OverdueDelivery): Promise<boolean> {
    const { organisationId, webhookId, deliveryId, attempts } = delivery
    const request = { organisationId, webhookId, deliveryId, number: attempts + 1 }
    try {
      const outcome = await makeAttempt(
        { ...request, waitUntil: null, onlyIfDue: true, kind: 'retry' },
        { cancelled: shutdown.stopping, shutDown: shutdown.cutOff },
      )
      // No slot is free soon, or the endpoint is slow.
      if (outcome.state === 'deferred') return false
      if (outcome.state !== 'waiting') return true
      // A start that Temporal refuses is left to the sweeper.
      await workflows.start(delivery, nextAttempt(outcome), { allowRestart: true })
      return true
    } catch (error) {
      if (shutdown.stopping.aborted) throw error
      logger.warn({ event: 'overdue_attempt.failed', deliveryId, err: error }, 'overdue_attempt.failed')
      return false
    }
  }

  return {
    async make(delivery) {
      if (!mayMake(delivery)) return false
      const attempt = makeNext(delivery).finally(() => inFlight.delete(attempt))
      inFlight.add(attempt)
      // Whatever ends it after that: its row is swept again.
      attempt.catch(() => undefined)
      const isOver = new AbortController()
      const slow = delay(SLOW_POST_MS, true, { signal: isOver.signal }).catch(() => true)
      return Promise.race([attempt, slow]).finally(() => isOver.abort())
    },
    async stop() {
      await Promise.allSettled(inFlight)
    },
  }
}
