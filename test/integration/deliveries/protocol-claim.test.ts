import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { claimAttempts, releaseRuns, renewLeases } from '../../../src/deliveries/protocol/claim.ts'
import { lockWebhook } from '../../../src/db/queries/webhooks.ts'
import { requestRetries } from '../../../src/deliveries/protocol/change-deliveries.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { holdClock, untilWaitingForLock } from '../../helpers/database/database.ts'
import { setRow, type RowState } from '../../helpers/deliveries/set-row.ts'
import { useAttempts } from '../../helpers/deliveries/use-attempts.ts'
import { useRows } from '../../helpers/deliveries/use-rows.ts'

const LEASE_MS = 60_000

describe('the claim of a delivery', () => {
  const suite = useRows()
  const owner = randomUUID()
  const bodyOf = async ({ deliveryId }: { deliveryId: string }): Promise<Buffer> => {
    const ofDelivery = 'SELECT e.body FROM event e JOIN delivery d ON d.event_id = e.id WHERE d.id = $1'
    const [event] = await suite.database.dataSource.query<{ body: Buffer }[]>(ofDelivery, [deliveryId])
    return event!.body
  }

  it('has a pending delivery in progress by its run until the lease ends, and counts the run', async () => {
    const one = await suite.publish()
    const claim = await suite.claim(one, { owner })
    expect(claim).to.include({ owner, runs: 1, isRequested: false, webhookId: one.webhookId, url: one.url })
    expect(claim!.body).to.deep.equal(await bodyOf(one))
    expect(claim!.ageMs).to.be.within(0, 15_000)
    const row = await suite.row(one)
    expect(row).to.include({ state: 'in_progress', attempts: 0, runs: 1, owner, workflow_started_at: null })
    expect(row.lease_until!.getTime()).to.be.within(
      Date.now() + LEASE_MS - 15_000,
      Date.now() + LEASE_MS + 50,
    )
    expect(row.sweep_at).to.deep.equal(row.lease_until)
  })

  it('leaves a lost worker of a workflow to Temporal, and to the sweeper later', async () => {
    const one = await suite.publish()
    await suite.claim(one, { isWorkflow: true })
    const row = await suite.row(one)
    expect(row.workflow_started_at).to.be.instanceOf(Date)
    expect(row.sweep_at!.getTime() - row.lease_until!.getTime()).to.equal(15_000)
  })

  it('keeps when the workflow of a delivery started, for any claim', async () => {
    const one = await suite.deliveryIn({ state: 'waiting', dueInMs: 0, workflow: true })
    const { workflow_started_at: before } = await suite.row(one)
    for (const isWorkflow of [false, true]) {
      await suite.claim(one, { number: 2, isWorkflow, leaseMs: -1 })
      const row = await suite.row(one)
      expect(row.workflow_started_at).to.deep.equal(before)
      expect(row.sweep_at!.getTime() - row.lease_until!.getTime()).to.equal(15_000)
    }
  })

  it('passes over a row that is locked, and takes the others of its batch', async () => {
    const { dataSource } = suite.database
    const [locked, free] = [await suite.publish(), await suite.publish()]
    const runs = [locked, free].map(({ organisationId, deliveryId }) => {
      return { organisationId, deliveryId, number: 1, owner: randomUUID(), isWorkflow: false }
    })
    await dataSource.transaction(async (manager) => {
      await manager.query('SELECT 1 FROM delivery WHERE id = $1 FOR UPDATE', [locked.deliveryId])
      const claims = await claimAttempts(dataSource, runs, LEASE_MS)
      expect(claims.map((claim) => claim?.owner)).to.deep.equal([undefined, runs[1]!.owner])
    })
    expect(await suite.claim(locked)).not.to.equal(null)
  })

  for (const [inMs, isClaimed] of [
    [-60_000, true],
    [0, true],
    [5_000, false],
    [60_000, false],
  ] as const)
    it(`is ${isClaimed ? 'granted' : 'refused'} ${Math.abs(inMs)} ms ${inMs > 0 ? 'before' : 'after'} a retry is due`, async () => {
      const one = await suite.deliveryIn({ state: 'waiting', attempts: 3, dueInMs: inMs })
      const claim = await suite.claim(one, { number: 4 })
      expect(claim !== null).to.equal(isClaimed)
      expect(await suite.row(one)).to.include({ state: isClaimed ? 'in_progress' : 'waiting', attempts: 3 })
    })

  for (const to of [
    { state: 'completed', attempts: 1 },
    { state: 'failed', attempts: 1 },
    { state: 'stopped', attempts: 1 },
  ] as const)
    it(`is refused for a delivery that is ${to.state}`, async () => {
      const one = await suite.deliveryIn(to)
      expect(await suite.claim(one, { number: 2 })).to.equal(null)
    })

  it('is refused to another organisation', async () => {
    const one = await suite.publish()
    expect(await suite.claim({ ...one, organisationId: 'org_other' })).to.equal(null)
  })

  for (const [what, change] of [
    ['is switched off', 'enabled = false'],
    ['is deleted', 'deleted_at = now(), secret = NULL'],
    ['is not subscribed to its key any more', `subscribed_event_keys = '{invoice:paid}'`],
  ] as const)
    it(`is refused while the webhook ${what}, and changes nothing`, async () => {
      for (const [number, to] of [
        [1, { state: 'pending' }],
        [2, { state: 'waiting', dueInMs: 0 }],
        [1, { state: 'in_progress', leaseMs: -1 }],
      ] as [number, RowState][]) {
        const one = await suite.deliveryIn(to)
        await suite.change(one.webhookId, change)
        const before = await suite.row(one)
        expect(await suite.claim(one, { number })).to.equal(null)
        expect(await suite.row(one)).to.deep.equal(before)
      }
    })

  it("is that of a user's retry where one was requested of a delivery that was attempted, also once its run is lost", async () => {
    const one = await suite.deliveryIn({ state: 'waiting', attempts: 2 })
    await requestRetries(suite.database.dataSource, { ...one, ids: [one.deliveryId], states: ['waiting'] })
    for (const runs of [1, 2]) {
      const claim = await suite.claim(one, { number: 3, leaseMs: -1 })
      expect(claim).to.include({ isRequested: true, runs })
    }
    expect(await suite.row(one)).to.include({ retry_requested: false, attempt_requested: true })
  })

  it('is that of the schedule for a first attempt, even where a user requested it before', async () => {
    const one = await suite.publish()
    await requestRetries(suite.database.dataSource, { ...one, ids: [one.deliveryId], states: ['pending'] })
    expect(await suite.claim(one)).to.include({ isRequested: false })
    expect(await suite.row(one)).to.include({ retry_requested: false, attempt_requested: false })
  })

  it('grants each run its own delivery, in the order of the runs, and one of two of the same delivery', async () => {
    const webhook = await suite.webhook()
    const deliveries: CommittedDelivery[] = []
    for (let index = 0; index < 4; index++) deliveries.push(await suite.publish(webhook))
    await setRow(suite.database.dataSource, deliveries[1]!.deliveryId, { state: 'completed' })
    const [first, completed, second] = deliveries.toReversed()
    const asked = [first!, completed!, second!, deliveries[1]!, first!]
    const runs = asked.map((delivery) => ({ ...delivery, number: 1, owner: randomUUID(), isWorkflow: false }))
    const claims = await claimAttempts(suite.database.dataSource, runs, LEASE_MS)
    expect(claims[1]).to.include({ owner: runs[1]!.owner })
    expect(claims[2]).to.equal(null)
    expect(claims[3]).to.equal(null)
    const twice = [claims[0] ?? null, claims[4] ?? null].filter((claim) => claim !== null)
    expect(twice).to.have.length(1)
    expect(await suite.row(first!)).to.include({ owner: twice[0]!.owner, runs: 1 })
  })
})

describe('the claim of a retry, on a clock that stands still', () => {
  const suite = useRows()
  before(() => holdClock(suite.database.dataSource, new Date('2026-01-02T03:04:05Z')))

  it('is granted 3 ms before it is due, and not 4', async () => {
    for (const [leadMs, isClaimed] of [
      [0, true],
      [3, true],
      [4, false],
    ] as const) {
      const one = await suite.deliveryIn({ state: 'waiting', dueInMs: leadMs })
      expect((await suite.claim(one, { number: 2 })) !== null, String(leadMs)).to.equal(isClaimed)
    }
  })
})

describe('the release of a delivery', () => {
  const suite = useRows()
  const owner = randomUUID()
  const release = ({ deliveryId }: CommittedDelivery, hasPosted: boolean) =>
    releaseRuns(suite.database.dataSource, [{ deliveryId, owner, hasPosted }])

  it('before the POST of its first run leaves it pending, due at once', async () => {
    const one = await suite.publish()
    await suite.claim(one, { owner })
    await release(one, false)
    const row = await suite.row(one)
    expect(row).to.include({ state: 'pending', runs: 0, owner: null, lease_until: null })
    expect(row.sweep_at!.getTime()).to.be.at.most(Date.now())
    expect(await suite.claim(one)).to.include({ runs: 1 })
  })

  it("before the POST of a later attempt leaves it waiting, as due as it was, with the user's request", async () => {
    for (const isRequested of [false, true]) {
      const one = await suite.deliveryIn({ state: 'waiting', attempts: 4, dueInMs: -5_000, workflow: true })
      const of = { ...one, ids: [one.deliveryId], states: ['waiting'] as const }
      if (isRequested) await requestRetries(suite.database.dataSource, of)
      const { next_attempt_at: dueAt } = await suite.row(one)
      await suite.claim(one, { number: 5, owner })
      await release(one, false)
      expect(await suite.row(one)).to.deep.include({
        state: 'waiting',
        attempts: 4,
        runs: 0,
        owner: null,
        lease_until: null,
        next_attempt_at: dueAt,
        retry_requested: isRequested,
        attempt_requested: false,
      })
      expect(await suite.claim(one, { number: 5 })).to.include({ isRequested, runs: 1 })
    }
  })

  it('keeps a retry that a user requested during the run', async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', owner, attempts: 2 })
    await requestRetries(suite.database.dataSource, {
      ...one,
      ids: [one.deliveryId],
      states: ['in_progress'],
    })
    await release(one, false)
    expect(await suite.row(one)).to.include({ state: 'waiting', retry_requested: true })
  })

  it('after its POST leaves it in progress, with the lease over and the run counted', async () => {
    const one = await suite.publish()
    await suite.claim(one, { owner })
    await release(one, true)
    const row = await suite.row(one)
    expect(row).to.include({ state: 'in_progress', owner, runs: 1, attempts: 0 })
    expect(row.lease_until!.getTime()).to.be.below(Date.now())
    expect(row.sweep_at!.getTime()).to.be.at.most(Date.now())
    expect(await suite.claim(one)).to.include({ runs: 2 })
  })

  it("after its POST keeps a user's retry for the run that repeats it", async () => {
    const one = await suite.deliveryIn({ state: 'waiting', attempts: 1 })
    await requestRetries(suite.database.dataSource, { ...one, ids: [one.deliveryId], states: ['waiting'] })
    await suite.claim(one, { number: 2, owner })
    await release(one, true)
    expect(await suite.row(one)).to.include({ retry_requested: false, attempt_requested: true })
    expect(await suite.claim(one, { number: 2 })).to.include({ isRequested: true })
  })

  it('before its POST leaves it in progress where an earlier run was lost: that one may have posted', async () => {
    const one = await suite.deliveryIn({ state: 'in_progress', runs: 2, leaseMs: -1 })
    expect(await suite.claim(one, { owner })).to.include({ runs: 3 })
    await release(one, false)
    const row = await suite.row(one)
    expect(row).to.include({ state: 'in_progress', owner, runs: 2 })
    expect(row.lease_until!.getTime()).to.be.below(Date.now())
    expect(await suite.claim(one)).to.include({ runs: 3 })
  })

  it('leaves the next run to its workflow, which repeats the attempt by itself', async () => {
    const one = await suite.publish()
    await suite.claim(one, { owner, isWorkflow: true })
    await release(one, false)
    const { sweep_at: sweepAt } = await suite.row(one)
    expect(sweepAt!.getTime() - Date.now()).to.be.within(10_000, 15_050)
  })
})

describe('the renewal of a lease', () => {
  const suite = useRows()
  const owner = randomUUID()

  it('lets no other run claim the delivery meanwhile, and passes over a row that is locked', async () => {
    const { dataSource } = suite.database
    const one = await suite.deliveryIn({ state: 'in_progress', owner, leaseMs: -1 })
    const { deliveryId } = one
    await dataSource.transaction(async (manager) => {
      await manager.query('SELECT 1 FROM delivery WHERE id = $1 FOR UPDATE', [deliveryId])
      await renewLeases(dataSource, [{ deliveryId, owner }], LEASE_MS)
    })
    expect((await suite.row(one)).lease_until!.getTime()).to.be.below(Date.now())
    await renewLeases(dataSource, [{ deliveryId, owner }], LEASE_MS)
    expect(await suite.claim(one)).to.equal(null)
    const row = await suite.row(one)
    expect(row.lease_until!.getTime()).to.be.above(Date.now() + LEASE_MS / 2)
    expect(row.sweep_at).to.deep.equal(row.lease_until)
  })
})

describe('an attempt whose claim is refused', () => {
  const suite = useAttempts()

  for (const [what, change, reason] of [
    ['is switched off', 'enabled = false', 'webhook_disabled'],
    ['is not subscribed to its key any more', `subscribed_event_keys = '{invoice:paid}'`, 'unsubscribed'],
  ] as const)
    it(`stops what the webhook does not take any more, under its lock, where it ${what}`, async () => {
      const { dataSource } = suite.database
      const { delivery, webhook } = await suite.publish()
      await dataSource.query(`UPDATE webhook SET ${change} WHERE id = $1`, [webhook.id])
      let outcome: Promise<unknown> = Promise.resolve()
      await dataSource.transaction(async (manager) => {
        await lockWebhook(manager, webhook.id)
        outcome = suite.attempt(delivery)
        await untilWaitingForLock(dataSource)
        expect(await suite.row(delivery.deliveryId)).to.include({ state: 'pending' })
      })
      expect(await outcome).to.include({ state: 'stopped', attempts: 0 })
      expect(await suite.row(delivery.deliveryId)).to.include({ state: 'stopped', stop_reason: reason })
      expect(suite.receiver.posts).to.have.length(0)
    })

  it('is made after all where the webhook is switched on again before it is stopped', async () => {
    const { dataSource } = suite.database
    const { delivery, webhook } = await suite.publish()
    await dataSource.query('UPDATE webhook SET enabled = false WHERE id = $1', [webhook.id])
    let outcome: Promise<unknown> = Promise.resolve()
    await dataSource.transaction(async (manager) => {
      await lockWebhook(manager, webhook.id)
      outcome = suite.attempt(delivery)
      await untilWaitingForLock(dataSource)
      await manager.query('UPDATE webhook SET enabled = true WHERE id = $1', [webhook.id])
    })
    expect(await outcome).to.include({ state: 'completed' })
  })
})
