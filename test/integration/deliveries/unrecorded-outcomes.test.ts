import { expect } from 'chai'
import pg from 'pg'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import {
  attemptDependencies,
  attemptRequest,
  NO_SIGNALS,
  proveEndpoint,
} from '../../helpers/deliveries/attempts.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createReceiver, type Receiver } from '../../helpers/receivers/receiver.ts'

const ATTEMPT_TIMEOUT_MS = 3_000

/** An attempt waits for the record of its outcome for so long. */
const SLOT_HELD_MS = 5_000

/** Unrecorded outcomes of a webhook; then it gets no further POST. */
const MAX_UNRECORDED = 10

describe('outcomes that cannot be recorded for long', () => {
  const database = useDatabase()
  let receiver: Receiver
  let holder: pg.Client
  let webhook: { organisationId: string; webhookId: string }
  let closing: (() => Promise<unknown>)[]

  beforeEach(async () => {
    receiver = await createReceiver({ answer: () => 500 })
    const { organisationId } = await createMember(database.dataSource)
    const { id: webhookId } = await createWebhookRow(database.dataSource, {
      organisationId,
      url: receiver.url,
    })
    webhook = { organisationId, webhookId }
    holder = new pg.Client({ connectionString: database.url })
    await holder.connect()
    await holder.query('BEGIN')
    await holder.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [webhookId])
    closing = [() => receiver.close()]
  })
  afterEach(async () => {
    await holder.end()
    for (const close of closing) await close()
  })

  /** One process. */
  function createProcess() {
    const dependencies = attemptDependencies(database.dataSource, ATTEMPT_TIMEOUT_MS)
    closing.unshift(async () => {
      await dependencies.endpoints.recorded()
      await dependencies.httpClient.close()
    })
    proveEndpoint(dependencies.endpoints, webhook.webhookId)
    const make = createAttempt(dependencies)
    const attempt = (deliveryId: string) =>
      make(attemptRequest({ ...webhook, deliveryId }, { maxWaitMs: 0, queue: 'slow' }), NO_SIGNALS)
    return { attempt, endpoints: dependencies.endpoints }
  }
  async function publish(count: number): Promise<string[]> {
    const ids: string[] = []
    for (let index = 0; index < count; index++) {
      const [delivery] = await publishRow(database.dataSource, webhook.organisationId)
      ids.push(delivery!.deliveryId)
    }
    return ids
  }
  const recordedOf = async (ids: string[]): Promise<number> => {
    const [found] = await database.dataSource.query<{ count: number }[]>(
      'SELECT count(*)::int AS count FROM attempt WHERE delivery_id = ANY($1::uuid[])',
      [ids],
    )
    return found!.count
  }

  it('give their slots back, stop further POSTs to the webhook, and are recorded after all', async () => {
    const { attempt, endpoints } = createProcess()
    const kept = await publish(MAX_UNRECORDED)
    const beganAtMs = performance.now()
    const outcomes = await Promise.all(kept.map(attempt))
    expect(outcomes.map(({ state }) => state)).to.deep.equal(kept.map(() => 'deferred'))
    expect(performance.now() - beganAtMs).to.be.at.least(SLOT_HELD_MS - 100)
    expect(receiver.posts).to.have.length(MAX_UNRECORDED)

    // Nothing is posted again, nor for another delivery, and neither waits for it.
    const [further] = await publish(1)
    for (const deliveryId of [kept[0]!, further!])
      expect(await attempt(deliveryId)).to.include({ state: 'deferred', delayMs: 5_000 })
    expect(endpoints.health(webhook.webhookId)).to.equal('slow')
    expect(receiver.posts).to.have.length(MAX_UNRECORDED)
    expect(await recordedOf(kept)).to.equal(0)

    await holder.query('COMMIT')
    await eventually(async () => expect(await recordedOf(kept)).to.equal(MAX_UNRECORDED))
    await endpoints.recorded()
    expect(await attempt(kept[0]!)).to.include({ state: 'waiting', attempts: 1 })
    expect(await attempt(further!)).to.include({ state: 'waiting', attempts: 1 })
    expect(receiver.posts).to.have.length(MAX_UNRECORDED + 1)
  })

  it('are posted again by no other process, which does not wait for them for ever', async () => {
    const [first, second] = [createProcess(), createProcess()]
    const [kept] = await publish(1)
    expect(await first.attempt(kept!)).to.include({ state: 'deferred' })
    expect(await second.attempt(kept!)).to.include({ state: 'deferred' })
    await holder.query('COMMIT')
    await eventually(async () => expect(await recordedOf([kept!])).to.equal(1))
    expect(await second.attempt(kept!)).to.include({ state: 'waiting', attempts: 1 })
    expect(receiver.posts).to.have.length(1)
  })
})
