import type { DataSource } from 'typeorm'
import type { IncidentLabel } from '../../../src/domain/workflow-inputs.ts'
import { type AttemptDependencies, createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import type { AttemptOutcome } from '../../../src/domain/attempt-outcome.ts'
import type { PostResult } from '../../../src/outbound/http-client.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../deliveries/attempts.ts'
import { makeDue, setRow } from '../deliveries/set-row.ts'
import { createMember, createWebhookRow, publishRow, type TestMember } from '../database/factories.ts'

/** One attempt that is to be made, and what its receiver will answer. */
export type Planned = { deliveryId: string; number: number; succeeds: boolean }

export type ConcurrentWebhook = {
  member: TestMember
  webhookId: string
  /** Incidents whose workflow was signalled, in order. */
  signalled: IncidentLabel[]
  publish(count: number): Promise<string[]>
  /** So many deliveries whose latest attempt, `attempts`, failed. */
  publishFailing(count: number, attempts?: number): Promise<string[]>
  /**
   * Makes all of them at once: no receiver answers before every POST that comes has come, so that all are recorded at
   * the same time. Those that wait for a later attempt are made due first.
   */
  attempt(planned: readonly Planned[]): Promise<AttemptOutcome[]>
  incidents(): Promise<{ id: string; open: boolean; exhausted: boolean }[]>
  /** How many deliveries are in each state. */
  states(): Promise<Record<string, number>>
}

/**
 * Creates a webhook of an organisation of its own, whose attempts end at the same time. `process`: what it shares with
 * other webhooks of one process.
 */
export async function createConcurrentWebhook(
  dataSource: DataSource,
  process = attemptDependencies(dataSource),
): Promise<ConcurrentWebhook> {
  const member = await createMember(dataSource)
  const { organisationId } = member
  const url = 'https://receiver.example.com/'
  const { id: webhookId } = await createWebhookRow(dataSource, { organisationId, url })
  const signalled: IncidentLabel[] = []
  const endpoints = createEndpoints({ maxLimit: 1_000, initialLimit: 1_000 })
  const dependencies: AttemptDependencies = {
    ...process,
    endpoints,
    incidentWorkflows: { signal: (incident) => Promise.resolve(void signalled.push(incident)) },
  }

  async function attempt(planned: readonly Planned[]): Promise<AttemptOutcome[]> {
    const later = planned.filter(({ number }) => number > 1)
    if (later.length > 0)
      await makeDue(
        dataSource,
        later.map(({ deliveryId }) => deliveryId),
      )
    const barrier = createBarrier(planned.length)
    const succeeding = new Set(planned.filter(({ succeeds }) => succeeds).map(({ deliveryId }) => deliveryId))
    const make = createAttempt({
      ...dependencies,
      httpClient: {
        post: async ({ headers }) => {
          await barrier.ready()
          return answerOf(succeeding.has(headers['X-Webhook-Event-ID']!))
        },
        close: () => Promise.resolve(),
      },
    })
    return Promise.all(
      planned.map(({ deliveryId, number }) =>
        make(
          attemptRequest({ organisationId, webhookId, deliveryId }, { number, maxWaitMs: 0, queue: 'slow' }),
          NO_SIGNALS,
        ).finally(barrier.leave),
      ),
    )
  }
  async function publish(count: number): Promise<string[]> {
    const published = await Promise.all(
      Array.from({ length: count }, () => publishRow(dataSource, organisationId)),
    )
    return published.flat().map(({ deliveryId }) => deliveryId)
  }

  return {
    member,
    webhookId,
    signalled,
    publish,
    attempt,
    async publishFailing(count, attempts = 1) {
      const ids = await publish(count)
      await attempt(ids.map((deliveryId) => ({ deliveryId, number: 1, succeeds: false })))
      if (attempts > 1) await setRow(dataSource, ids, { state: 'waiting', attempts })
      signalled.length = 0
      return ids
    },
    incidents: () =>
      dataSource.query(
        `SELECT id, closed_at IS NULL AS open, exhausted_at IS NOT NULL AS exhausted FROM incident
          WHERE webhook_id = $1 ORDER BY opened_at`,
        [webhookId],
      ),
    async states() {
      const found = await dataSource.query<{ state: string; count: number }[]>(
        'SELECT state, count(*)::int AS count FROM delivery WHERE webhook_id = $1 GROUP BY state',
        [webhookId],
      )
      return Object.fromEntries(found.map(({ state, count }) => [state, count]))
    },
  }
}

/** Lets `count` callers wait for each other; one that leaves before it is ready is not waited for. */
function createBarrier(count: number): { ready(): Promise<void>; leave: () => void } {
  let awaited = count
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  const leave = (): void => {
    awaited -= 1
    if (awaited === 0) open()
  }
  return {
    leave,
    ready() {
      leave()
      return opened
    },
  }
}

function answerOf(succeeded: boolean): PostResult {
  return {
    succeeded,
    failureCode: succeeded ? null : 'http_status',
    statusCode: succeeded ? 200 : 503,
    error: succeeded ? null : 'The endpoint answered 503.',
    startedAt: new Date(),
    durationMs: 1,
    response: null,
    isInconclusive: false,
  }
}
