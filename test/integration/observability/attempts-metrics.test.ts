import { attemptRequest, NO_SIGNALS, type TestDependencies } from '../../helpers/deliveries/attempts.ts'
import { expect } from 'chai'
import { Registry } from 'prom-client'
import { addressNotification } from '../../../src/db/queries/notifications.ts'
import { openIncident } from '../../../src/db/queries/incidents.ts'
import { upsertOrganisation } from '../../../src/db/queries/organisations.ts'
import type { AttemptRequest } from '../../../src/domain/attempt-outcome.ts'
import type { Slot } from '../../../src/deliveries/attempt/endpoint.ts'
import { createEndpoints } from '../../../src/deliveries/attempt/endpoint-concurrency.ts'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { claimAttempts } from '../../../src/deliveries/protocol/claim.ts'
import { newId } from '../../../src/ids.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { sendDue } from '../../../src/incidents/notifications/send-due.ts'
import { useAttempts } from '../../helpers/deliveries/use-attempts.ts'
import { parseExposition, type Exposition } from '../../helpers/metrics/exposition.ts'

describe("a worker's metrics", () => {
  const suite = useAttempts()
  const { database, answerWith } = suite
  let registry: Registry
  let dependencies: TestDependencies
  let request: AttemptRequest

  beforeEach(async () => {
    registry = new Registry()
    dependencies = { ...suite.dependencies, metrics: createMetrics(registry) }
    request = attemptRequest((await suite.publish()).delivery)
  })

  const run = (sql: string) => database.dataSource.query(sql, [request.deliveryId])
  const attempt = (more: Partial<AttemptRequest> = {}) =>
    createAttempt(dependencies)({ ...request, ...more }, NO_SIGNALS)
  const counted = async (): Promise<Exposition> => parseExposition(await registry.metrics())
  const attempts = async (failureCode: string, trigger = 'schedule') =>
    (await counted()).sumOf('posthorn_attempts_total', { failure_code: failureCode, trigger })

  it('count a success with its duration and its delay since the commit', async () => {
    await run(`UPDATE delivery SET created_at = now() - interval '3 seconds' WHERE id = $1`)
    await database.dataSource.query(`UPDATE webhook SET updated_at = now() - interval '1 hour'`)
    await attempt()
    const { valueOf } = await counted()
    expect(await attempts('none')).to.equal(1)
    expect(valueOf('posthorn_deliveries_total', { state: 'completed' })).to.equal(1)
    expect(valueOf('posthorn_attempt_duration_seconds_count', { outcome: 'succeeded' })).to.equal(1)
    expect(valueOf('posthorn_first_attempt_delay_seconds_count')).to.equal(1)
    expect(valueOf('posthorn_first_attempt_delay_seconds_sum')).to.be.within(2.9, 60)
    expect(valueOf('posthorn_retry_lateness_seconds_count')).to.equal(0)
    expect(valueOf('posthorn_attempts_in_flight')).to.equal(0)
  })

  it('leave out of the delay what the webhook was disabled for', async () => {
    await run(`UPDATE delivery SET created_at = now() - interval '1 hour' WHERE id = $1`)
    await database.dataSource.query(`UPDATE webhook SET updated_at = now() - interval '3 seconds'`)
    await attempt()
    expect((await counted()).valueOf('posthorn_first_attempt_delay_seconds_sum')).to.be.within(2.9, 60)
  })

  it('count in the delay how long an inline attempt waited after its claim', async () => {
    const { webhookId, deliveryId } = request
    const run = { ...request, owner: newId(), isWorkflow: false }
    const [claimed] = await claimAttempts(database.dataSource, [run], 20_000)
    const slot = dependencies.endpoints.acquire(webhookId, deliveryId) as Slot
    const claim = { ...claimed!, ageMs: 0, claimedAtMs: performance.now() - 600 }
    await createAttempt(dependencies)(request, NO_SIGNALS, { claim, slot })
    expect((await counted()).valueOf('posthorn_first_attempt_delay_seconds_sum')).to.be.within(0.599, 60)
  })

  it('count an attempt in progress', async () => {
    let seen: number | undefined
    answerWith(async () => {
      seen = (await counted()).valueOf('posthorn_attempts_in_flight')
      return 200
    })
    await attempt()
    expect(seen).to.equal(1)
  })

  it('count a failure by its code, and the lateness of the next retry', async () => {
    answerWith(() => 503)
    await attempt()
    expect(await attempts('http_status')).to.equal(1)
    expect((await counted()).sumOf('posthorn_deliveries_total')).to.equal(0)
    answerWith(() => 200)
    await run(`UPDATE delivery SET next_attempt_at = now() - interval '2 seconds' WHERE id = $1`)
    await attempt({ number: 2, dueAtMs: Date.now() - 2_000, maxWaitMs: 500 })
    const { valueOf } = await counted()
    expect(valueOf('posthorn_retry_lateness_seconds_count')).to.equal(1)
    expect(valueOf('posthorn_retry_lateness_seconds_sum')).to.be.within(2, 60)
    expect(valueOf('posthorn_first_attempt_delay_seconds_count')).to.equal(1)
    expect(valueOf('posthorn_deliveries_total', { state: 'completed' })).to.equal(1)
  })

  it('leave a retry that a user requested out of the lateness', async () => {
    await run(
      `UPDATE delivery SET state = 'waiting', attempts = 1, retry_requested = true,
              next_attempt_at = now() - interval '2 seconds' WHERE id = $1`,
    )
    await attempt({ number: 2, dueAtMs: Date.now() - 2_000 })
    expect(await attempts('none', 'retry')).to.equal(1)
    expect((await counted()).valueOf('posthorn_retry_lateness_seconds_count')).to.equal(0)
  })

  it('omit an attempt that another worker recorded meanwhile', async () => {
    answerWith(async (index) => {
      if (index > 0) return 200
      await run(`UPDATE delivery SET lease_until = now() - interval '1 second' WHERE id = $1`)
      const another = { ...dependencies, endpoints: createEndpoints({ maxLimit: 50 }) }
      expect(await createAttempt(another)(request, NO_SIGNALS)).to.include({ state: 'completed' })
      return 503
    })
    expect(await attempt()).to.include({ state: 'completed' })
    expect(await attempts('none')).to.equal(1)
    expect((await counted()).sumOf('posthorn_attempts_total')).to.equal(1)
  })

  it('count a delivery that is found stopped', async () => {
    await database.dataSource.query('UPDATE webhook SET enabled = false WHERE id = $1', [request.webhookId])
    await attempt()
    expect((await counted()).valueOf('posthorn_deliveries_total', { state: 'stopped' })).to.equal(1)
    expect((await counted()).sumOf('posthorn_attempts_total')).to.equal(0)
  })

  it('count a deferred attempt, but not as our delay', async () => {
    const { endpoints } = dependencies
    dependencies.endpoints = { ...endpoints, acquireSoon: () => Promise.resolve({ retryAfterMs: 500 }) }
    await attempt()
    expect((await counted()).valueOf('posthorn_attempts_deferred_total')).to.equal(1)
    dependencies.endpoints = endpoints
    await attempt({ queue: 'slow' })
    expect(await attempts('none')).to.equal(1)
    expect((await counted()).valueOf('posthorn_first_attempt_delay_seconds_count')).to.equal(0)
  })

  it('count a failed notification, one with an unknown outcome, and one whose recipient is no longer one', async () => {
    const { organisationId, webhookId } = request
    const { dataSource } = database
    const organisation = {
      id: organisationId,
      name: 'Zon',
      email: 'a@zon.example',
      timeZone: 'Europe/Brussels',
    }
    await upsertOrganisation(dataSource, { ...organisation, supportEmail: 'b@zon.example' })
    const incidentId = newId()
    await openIncident(dataSource, { id: incidentId, organisationId, webhookId })
    const address = (kind: 1 | 2) =>
      addressNotification(dataSource, incidentId, kind, [{ channel: 'email', recipient: 'b@zon.example' }])
    const send = () =>
      sendDue(dependencies, { organisationId, incidentId, retry: false }, NO_SIGNALS.shutDown)
    const ended = async (kind: string, state: string) =>
      (await counted()).valueOf('posthorn_notifications_total', { kind, channel: 'email', state })

    await address(1)
    await dataSource.query(`UPDATE notification SET created_at = now() - interval '25 hours'`)
    await send()
    expect(await ended('1', 'failed')).to.equal(1)
    await address(2)
    await dataSource.query(
      `UPDATE notification SET state = 'sending', claimed_at = now() - interval '1 hour' WHERE kind = 2`,
    )
    await send()
    await send()
    expect(await ended('2', 'unknown')).to.equal(1)
    await addressNotification(dataSource, incidentId, 2, [{ channel: 'email', recipient: 'c@zon.example' }])
    await send()
    expect(await ended('2', 'obsolete')).to.equal(1)
    // There is no mail server.
    await dataSource.query(`DELETE FROM notification WHERE kind = 1`)
    await address(1)
    await send()
    expect(await ended('1', 'obsolete')).to.equal(1)
    expect((await counted()).sumOf('posthorn_notifications_total')).to.equal(4)
  })
})
