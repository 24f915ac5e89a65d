import { setTimeout } from 'node:timers/promises'
import { expect } from 'chai'
import { type AttemptDependencies, createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { attemptRequest, NO_SIGNALS } from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'
import { useAttempts } from '../../helpers/deliveries/use-attempts.ts'

describe('an attempt', () => {
  // In time for a POST on a busy machine.
  const suite = useAttempts(3_000)
  const { database, answerWith } = suite
  let delivery: CommittedDelivery

  beforeEach(async () => {
    delivery = (await suite.publish()).delivery
  })

  const attempt = (number = 1) => suite.attempt(delivery, { number })
  const run = <Row>(sql: string, ...parameters: unknown[]): Promise<Row[]> =>
    database.dataSource.query<Row[]>(sql, parameters)
  const row = () => suite.row(delivery.deliveryId)
  const records = () => suite.attemptsOf(delivery.deliveryId)
  const set = (to: RowState) => setRow(database.dataSource, delivery.deliveryId, to)

  it('completes a delivery that the receiver confirms, and records what happened', async () => {
    expect(await attempt()).to.deep.equal({
      state: 'completed',
      attempts: 1,
      failureCode: null,
      statusCode: 200,
    })
    const now = await row()
    expect(now).to.include({
      state: 'completed',
      attempts: 1,
      runs: 0,
      owner: null,
      lease_until: null,
      sweep_at: null,
    })
    expect(now.completed_at).to.be.instanceOf(Date)
    const [record] = await records()
    expect(record).to.include({
      number: 1,
      trigger: 'schedule',
      url: suite.receiver.url,
      outcome: 'succeeded',
      status_code: 200,
    })
    expect(record).to.include({
      response_body: 'answer 0',
      response_truncated: false,
      error: null,
      failure_code: null,
    })
    expect(record!['response_headers']).to.include({ 'content-type': 'text/plain' })
  })

  it('waits after a failure, and returns when the next attempt is due', async () => {
    answerWith(() => 503)
    const startedAtMs = Date.now()
    const outcome = await attempt()
    expect(outcome).to.include({ state: 'waiting', attempts: 1, failureCode: 'http_status', statusCode: 503 })
    const { dueAtMs, dueInMs } = outcome as Extract<typeof outcome, { state: 'waiting' }>
    expect(dueAtMs - 1_000).to.be.within(startedAtMs, Date.now())
    expect(dueInMs).to.be.at.most(1_002)
    const now = await row()
    expect(now).to.include({ state: 'waiting', attempts: 1 })
    expect(now.next_attempt_at!.getTime()).to.equal(dueAtMs)
    expect(now.sweep_at!.getTime()).to.equal(dueAtMs + 15_000)
    const [record] = await records()
    expect(record).to.include({ outcome: 'failed', failure_code: 'http_status', status_code: 503 })
    expect(record!['error']).to.include('503')
  })

  it('posts nothing for an attempt that is recorded, and returns the same instant and the rest of the wait', async () => {
    answerWith(() => 500)
    const first = await attempt()
    const again = await attempt()
    expect({ ...again, dueInMs: 0 }).to.deep.equal({ ...first, dueInMs: 0 })
    expect(again).to.have.property('dueInMs').that.is.at.most(1_001)
    expect(suite.receiver.posts).to.have.length(1)
    expect(await records()).to.have.length(1)
  })

  it('leaves the incident of a time-out to the sweeper', async () => {
    const calls: string[] = []
    const reporting: AttemptDependencies = {
      ...suite.dependencies,
      timeoutPace: { next: () => Promise.resolve(void calls.push('pace')), waitMs: () => 0 },
      incidentWorkflows: { signal: () => Promise.resolve(void calls.push('incident')) },
    }
    answerWith(() => null)
    expect(await createAttempt(reporting)(attemptRequest(delivery), NO_SIGNALS)).to.include({
      failureCode: 'timeout',
    })
    expect(calls).to.deep.equal(['pace'])
    const owed = 'SELECT 1 FROM incident WHERE webhook_id = $1 AND sweep_at IS NOT NULL'
    expect(await run(owed, delivery.webhookId)).to.have.length(1)
  })

  it('returns the rest of the wait at the time when a time-out is reported', async () => {
    const waiting: AttemptDependencies = {
      ...suite.dependencies,
      timeoutPace: { next: () => setTimeout(300), waitMs: () => 0 },
    }
    answerWith(() => null)
    const outcome = await createAttempt(waiting)(attemptRequest(delivery), NO_SIGNALS)
    expect(outcome)
      .to.have.property('dueInMs')
      .that.is.at.most(1_001 - 299)
  })

  it('signals the incident of another failure at once', async () => {
    const calls: string[] = []
    const reporting: AttemptDependencies = {
      ...suite.dependencies,
      timeoutPace: { next: () => Promise.resolve(void calls.push('pace')), waitMs: () => 0 },
      incidentWorkflows: { signal: () => Promise.resolve(void calls.push('incident')) },
    }
    answerWith(() => 500)
    await createAttempt(reporting)(attemptRequest(delivery), NO_SIGNALS)
    expect(calls).to.deep.equal(['incident'])
  })

  it('logs that claims take more than a second, and posts when they are faster', async () => {
    await run(`CREATE FUNCTION claim_slowly() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(1.01); RETURN NEW; END'`)
    await run(`CREATE TRIGGER slow BEFORE UPDATE ON delivery FOR EACH ROW
      WHEN (NEW.owner IS NOT NULL AND OLD.owner IS NULL) EXECUTE FUNCTION claim_slowly()`)
    const logged: unknown[] = []
    const logger = { ...suite.dependencies.logger, warn: (line: unknown) => logged.push(line) }
    const ended = createAttempt({ ...suite.dependencies, logger })(attemptRequest(delivery), NO_SIGNALS)
    await eventually(() => expect(logged).to.have.length(1))
    expect(suite.receiver.posts).to.have.length(0)
    await run('DROP FUNCTION claim_slowly CASCADE')
    expect(await ended).to.include({ state: 'completed', attempts: 1 })
    expect(logged[0]).to.include({ event: 'attempt.claim_expired', deliveryId: delivery.deliveryId })
  })

  it('follows the row when a later attempt is requested than is due, and posts nothing', async () => {
    expect(await attempt(3)).to.include({ state: 'waiting', attempts: 0 })
    expect(suite.receiver.posts).to.have.length(0)
  })

  it('uses up no attempt and counts no lost worker when the signing secret cannot be opened', async () => {
    const [{ secret }] = (await run<{ secret: string }>(
      'SELECT secret FROM webhook WHERE id = $1',
      delivery.webhookId,
    )) as [{ secret: string }]
    await run(`UPDATE webhook SET secret = 'lost|' || secret WHERE id = $1`, delivery.webhookId)
    for (let run = 0; run < 7; run++) {
      const failure = await attempt().catch((error: unknown) => error)
      expect(failure).to.be.instanceOf(Error).with.property('message').that.includes('no key "lost"')
    }
    expect(await row()).to.include({ state: 'pending', attempts: 0, runs: 0, owner: null })
    expect(suite.receiver.posts).to.have.length(0)
    await run('UPDATE webhook SET secret = $2 WHERE id = $1', delivery.webhookId, secret)
    expect(await attempt()).to.include({ state: 'completed', attempts: 1 })
  })

  it('never posts while another attempt leases the row, and takes over when the lease expires', async () => {
    const heldUntil = Date.now() + 695
    await set({ state: 'in_progress', leaseMs: 700 })
    expect(await attempt()).to.include({ state: 'completed', attempts: 1 })
    expect(suite.receiver.posts).to.have.length(1)
    expect(suite.receiver.posts[0]!.arrivedAt).to.be.at.least(heldUntil)
  })

  it('keeps no connection while its row is locked, and posts once it is not', async () => {
    let ended: Promise<unknown> = Promise.resolve()
    await database.dataSource.transaction(async (manager) => {
      await manager.query('SELECT 1 FROM delivery WHERE id = $1 FOR UPDATE', [delivery.deliveryId])
      ended = attempt()
      await setTimeout(500)
      const waiting = await run(
        `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      )
      expect(waiting).to.deep.equal([])
      expect(suite.receiver.posts).to.have.length(0)
    })
    expect(await ended).to.include({ state: 'completed', attempts: 1 })
  })

  it('is recorded as failed, without a POST, after its worker was lost five times', async () => {
    await set({ state: 'in_progress', runs: 5, leaseMs: -1 })
    expect(await attempt()).to.include({ state: 'waiting', attempts: 1, failureCode: 'worker_lost' })
    expect(suite.receiver.posts).to.have.length(0)
    expect(await row()).to.include({ state: 'waiting', attempts: 1, runs: 0 })
  })

  it('sends exactly the headers of the specification, in addition to those of HTTP itself', async () => {
    await attempt()
    const names = suite.receiver.posts[0]!.rawHeaders.filter((_text, index) => index % 2 === 0)
    expect(names.map((name) => name.toLowerCase())).to.have.members([
      'host',
      'connection',
      'content-length',
      'user-agent',
      'content-type',
      'x-webhook-event-id',
      'x-webhook-signature',
    ])
    expect(names).to.include.members(['Content-Type', 'X-Webhook-Event-ID', 'X-Webhook-Signature'])
    expect(suite.receiver.posts[0]!.headers).to.include({
      'content-type': 'application/json',
      'x-webhook-event-id': delivery.deliveryId,
    })
  })
})
