import type { DataSource } from 'typeorm'
import type { IncidentLabel } from '../../../src/domain/workflow-labels.ts'
import type { AttemptDependencies } from '../../../src/deliveries/attempt/attempt-request.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { createWebhookLocks, type WebhookLocks } from '../../../src/incidents/webhook-locks.ts'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoints.ts'
import type { AttemptOutcome } from '../../../src/domain/attempt-outcome.ts'
import type { PostResult } from '../../../src/outbound/http-client.ts'
import { attemptDependencies } from '../deliveries/attempts.ts'
import { createMember, createWebhookRow, publishRow, type TestMember } from '../database/factories.ts'

/** One attempt that is to be made, and what its receiver will answer. */
export type Planned = { deliveryId: string; number: number; succeeds: boolean }

export type CrowdedWebhook = {
  member: TestMember
  webhookId: string
  /** Incidents whose workflow was told, in order. */
  told: IncidentLabel[]
  publish(count: number): Promise<string[]>
  /** So many deliveries whose latest attempt, `attempts`, failed. */
  publishFailing(count: number, attempts?: number): Promise<string[]>
  /**
   * Makes all of them at once: no receiver answers before every POST that comes has come, so that all are recorded at
   * the same time.
   */
  attempt(planned: readonly Planned[], locks?: WebhookLocks): Promise<AttemptOutcome[]>
  incidents(): Promise<{ id: string; open: boolean; exhausted: boolean }[]>
  /** How many deliveries are in each state. */
  states(): Promise<Record<string, number>>
}

const never = new AbortController().signal

/** A webhook of an organisation of its own, to which much happens at the same time. */
export async function createCrowdedWebhook(dataSource: DataSource): Promise<CrowdedWebhook> {
  const member = await createMember(dataSource)
  const { organisationId } = member
  const url = 'https://receiver.example.com/'
  const { id: webhookId } = await createWebhookRow(dataSource, { organisationId, url })
  const told: IncidentLabel[] = []
  const endpoints = createEndpoints({ maxLimit: 1_000, initialLimit: 1_000 })
  const processLocks = createWebhookLocks()
  const dependencies: AttemptDependencies = {
    ...attemptDependencies(dataSource),
    endpoints,
    incidentWorkflows: { tell: (incident) => Promise.resolve(void told.push(incident)) },
  }

  async function attempt(
    planned: readonly Planned[],
    locks: WebhookLocks = processLocks,
  ): Promise<AttemptOutcome[]> {
    const starting = createStartingGun(planned.length)
    const succeeding = new Set(planned.filter(({ succeeds }) => succeeds).map(({ deliveryId }) => deliveryId))
    const make = createAttempt({
      ...dependencies,
      locks,
      httpClient: {
        post: async ({ headers }) => {
          await starting.ready()
          return answerOf(succeeding.has(headers['X-Webhook-Event-ID']!))
        },
        close: () => Promise.resolve(),
      },
    })
    return Promise.all(
      planned.map(({ deliveryId, number }) =>
        make(
          { organisationId, webhookId, deliveryId, number, hold: null, onlyIfDue: false, kind: 'slow' },
          { cancelled: never, shutDown: never },
        ).finally(starting.leave),
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
    told,
    publish,
    attempt,
    async publishFailing(count, attempts = 1) {
      const ids = await publish(count)
      await attempt(ids.map((deliveryId) => ({ deliveryId, number: 1, succeeds: false })))
      if (attempts > 1)
        await dataSource.query('UPDATE delivery SET attempts = $2 WHERE id = ANY($1::uuid[])', [
          ids,
          attempts,
        ])
      told.length = 0
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

/** Lets `count` wait for each other; who leaves without having been ready is not waited for. */
function createStartingGun(count: number): { ready(): Promise<void>; leave: () => void } {
  let awaited = count
  let fire: () => void = () => undefined
  const fired = new Promise<void>((resolve) => (fire = resolve))
  const leave = (): void => {
    awaited -= 1
    if (awaited === 0) fire()
  }
  return {
    leave,
    ready() {
      leave()
      return fired
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
