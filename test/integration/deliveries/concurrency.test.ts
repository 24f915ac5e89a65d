import { expect } from 'chai'
import type { EntityManager } from 'typeorm'
import type { AttemptDependencies } from '../../../src/deliveries/attempt/attempt-request.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { coveredStates, listCovered } from '../../../src/db/queries/delivery-selection.ts'
import { requestRetries } from '../../../src/deliveries/protocol/change-deliveries.ts'
import { insertRetryJob } from '../../../src/db/queries/retry-jobs.ts'
import { lockWebhook } from '../../../src/db/queries/webhooks.ts'
import { DELIVERY_STATES } from '../../../src/domain/delivery-state.ts'
import { newId } from '../../../src/ids.ts'
import { createWebhookLocks, transactOnWebhook } from '../../../src/webhooks/webhook-locks.ts'
import { eventually } from '../../helpers/eventually.ts'
import { attemptDependencies } from '../../helpers/deliveries/attempts.ts'
import { requestRetry, switchOff as switchWebhookOff } from '../../helpers/deliveries/request-retry.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { createReceiver, type Receiver } from '../../helpers/receivers/receiver.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const never = new AbortController().signal
const NEVER = { cancelled: never, shutDown: never }

describe('outcomes, a switch-off and a retry job at the same instant', function () {
  const database = useDatabase()
  let dependencies: AttemptDependencies
  let receiver: Receiver
  let organisationId: string
  let webhookId: string

  before(() => {
    dependencies = attemptDependencies(database.dataSource)
  })
  after(() => dependencies.httpClient.close())
  beforeEach(async () => {
    let count = 0
    receiver = await createReceiver({ answer: () => (count++ % 2 === 0 ? 200 : 500) })
    organisationId = (await createMember(database.dataSource)).organisationId
    const webhook = await createWebhookRow(database.dataSource, { organisationId, url: receiver.url })
    webhookId = webhook.id
  })
  afterEach(() => receiver.close())

  const countBy = async (column: string): Promise<Record<string, number>> => {
    const found = await database.dataSource.query<{ value: string; count: number }[]>(
      `SELECT ${column} AS value, count(*)::int AS count FROM delivery WHERE webhook_id = $1 GROUP BY 1`,
      [webhookId],
    )
    return Object.fromEntries(found.map(({ value, count }) => [value, count]))
  }
  const underLock = <T>(work: (manager: EntityManager) => Promise<T>): Promise<T> =>
    database.dataSource.transaction(async (manager) => {
      await lockWebhook(manager, webhookId)
      return work(manager)
    })
  const switchOff = (beforeCommit = (): Promise<void> => Promise.resolve()) =>
    underLock(async (manager) => {
      await switchWebhookOff(manager, organisationId, webhookId)
      await beforeCommit()
    })
  const attempt = (delivery: CommittedDelivery) =>
    createAttempt(dependencies)(
      {
        organisationId,
        deliveryId: delivery.deliveryId,
        webhookId,
        number: 1,
        dueAtMs: null,
        maxWaitMs: 0,
        queue: 'first',
      },
      NEVER,
    )

  it('leave no delivery waiting or in progress, and every record agrees with its row', async () => {
    const published = await Promise.all(
      Array.from({ length: 100 }, () => publishRow(database.dataSource, organisationId)),
    )
    await writeBacklog(database.dataSource, { organisationId, webhookId, state: 'failed', count: 100 })
    const job = { id: newId(), organisationId, webhookId, mode: 'force' as const, requestedBy: 'mem_1' }
    const [, , outcomes] = await Promise.all([
      database.dataSource.transaction((manager) => insertRetryJob(manager, job)),
      switchOff(),
      Promise.all(published.flat().map(attempt)),
      underLock(async (manager) => {
        const of = { organisationId, webhookId }
        const page = { ...of, jobId: job.id, mode: 'force' as const, cursor: null, limit: 50 }
        const { ids } = await listCovered(manager, page)
        return requestRetries(manager, { ...of, ids, states: coveredStates('force') })
      }),
    ])
    // What the job brought back before the switch-off was stopped by it; the rest stayed as it was.
    const states = await countBy('state')
    expect(Object.keys(states)).to.have.members(
      Object.keys(states).filter((state) => ['completed', 'stopped', 'failed'].includes(state)),
    )
    const handled = outcomes.map((outcome) => outcome.state)
    // An attempt that failed before the switch-off said `waiting`, and its row was stopped a moment later.
    expect(states['completed'] ?? 0).to.equal(handled.filter((state) => state === 'completed').length)
    const [disagreeing] = await database.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM delivery d
        WHERE d.webhook_id = $1 AND d.attempts < 10
          AND d.attempts <> (SELECT count(*) FROM attempt a WHERE a.delivery_id = d.id)`,
      [webhookId],
    )
    expect(disagreeing!.count).to.equal(0)
  })

  it('make one retry of a hundred simultaneous requests for one delivery', async () => {
    const [deliveryId] = await writeBacklog(database.dataSource, {
      organisationId,
      webhookId,
      state: 'failed',
      count: 1,
    })
    const asked = await Promise.all(
      Array.from({ length: 100 }, () =>
        requestRetry(database.dataSource, organisationId, webhookId, deliveryId!),
      ),
    )
    expect(asked.every((answer) => answer?.attempts === 10)).to.equal(true)
    const request = {
      organisationId,
      deliveryId: deliveryId!,
      webhookId,
      number: 11,
      dueAtMs: null,
      maxWaitMs: 0,
      queue: 'retry' as const,
    }
    await Promise.all(Array.from({ length: 10 }, () => createAttempt(dependencies)(request, NEVER)))
    expect(receiver.postsOf(deliveryId!)).to.have.length(1)
  })

  it('leave a delivery stopped whose retry an operator requests during the switch-off', async () => {
    const [deliveryId] = await writeBacklog(database.dataSource, {
      organisationId,
      webhookId,
      state: 'waiting',
      count: 1,
    })
    const request = { organisationId, webhookId, ids: [deliveryId!], states: DELIVERY_STATES }
    const locks = createWebhookLocks()
    let requested: Promise<unknown> = Promise.resolve()
    await switchOff(async () => {
      requested = transactOnWebhook({ dataSource: database.dataSource, locks }, webhookId, (manager) =>
        requestRetries(manager, request),
      )
      await eventually(async () => {
        const [waits] = await database.dataSource.query<{ count: number }[]>(
          `SELECT count(*)::int AS count FROM pg_locks
            WHERE locktype = 'advisory' AND NOT granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        )
        expect(waits!.count).to.equal(1)
      })
    })
    await requested
    expect(await countBy('state')).to.deep.equal({ stopped: 1 })
  })

  it('disable a webhook with 50,000 waiting deliveries at once', async () => {
    await writeBacklog(database.dataSource, { organisationId, webhookId, state: 'waiting', count: 50_000 })
    await switchOff()
    expect(await countBy('state')).to.deep.equal({ stopped: 50_000 })
  })
})
