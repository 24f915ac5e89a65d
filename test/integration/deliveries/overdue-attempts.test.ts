import { expect } from 'chai'
import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'
import { eventually } from '../../helpers/eventually.ts'

describe('overdue attempts of deliveries that lost their workflow', () => {
  const suite = useInlineAttempts()

  /** As if `attempts` were recorded, and the next one were overdue by so many ms. */
  const overdue = ({ deliveryId }: DeliveryToStart, attempts = 4, byMs = 60_000) =>
    suite.database.dataSource.query(
      `UPDATE delivery SET state = 'waiting', attempts = $2, started_at = now(), owner = NULL, lease_until = NULL,
              next_attempt_at = now() - $3::int * interval '1 ms', sweep_at = now() - interval '1 ms' WHERE id = $1`,
      [deliveryId, attempts, byMs],
    )

  it('are made by the sweeping process in `direct`, without a workflow', async () => {
    const endpoint = await suite.endpoint()
    const deliveries = await endpoint.publish(20)
    for (const delivery of deliveries) await overdue(delivery)
    const { sweep } = suite.process({ mode: 'direct' })
    expect(await sweep.runOnce()).to.equal(20)
    expect(await suite.count(`state = 'completed' AND attempts = 5`)).to.equal(20)
    expect(endpoint.receiver.posts).to.have.length(20)
    expect(suite.temporal.starts).to.deep.equal([])
  })

  it('hand the next wait to a workflow when they fail', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const delivery = await endpoint.publishOne()
    await overdue(delivery, 2)
    const { sweep } = suite.process({ mode: 'direct' })
    await sweep.runOnce()
    const row = await suite.row(delivery.deliveryId)
    expect(row).to.include({ state: 'waiting', attempts: 3 })
    const [start, ...others] = suite.temporal.starts
    expect(others).to.deep.equal([])
    expect(start).to.deep.include({
      deliveryId: delivery.deliveryId,
      allowRestart: true,
      next: { number: 4, dueAtMs: row.next_attempt_at!.getTime() },
    })
  })

  it('end the delivery at the tenth failure, and need no workflow', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const delivery = await endpoint.publishOne()
    await overdue(delivery, 9)
    await suite.process({ mode: 'direct' }).sweep.runOnce()
    expect(await suite.row(delivery.deliveryId)).to.include({ state: 'failed', attempts: 10 })
    expect(suite.temporal.starts).to.deep.equal([])
  })

  it('are left to workflows in the other modes', async () => {
    const endpoint = await suite.endpoint()
    for (const mode of ['workflow', 'overflow'] as const) {
      const delivery = await endpoint.publishOne()
      await overdue(delivery)
      await suite.process({ mode }).sweep.runOnce()
      expect(suite.temporal.starts.map(({ deliveryId }) => deliveryId)).to.include(delivery.deliveryId)
    }
    expect(endpoint.receiver.posts).to.deep.equal([])
  })

  it('are not made before they are due', async () => {
    const endpoint = await suite.endpoint()
    const delivery = await endpoint.publishOne()
    await overdue(delivery, 4, -60_000)
    await suite.process({ mode: 'direct' }).sweep.runOnce()
    expect(endpoint.receiver.posts).to.deep.equal([])
    expect(suite.temporal.starts.map(({ next }) => next.number)).to.deep.equal([5])
  })

  it('do not hold up the pass where the endpoint hangs, and leave the rest of its backlog to workflows', async () => {
    const endpoint = await suite.endpoint(() => null)
    const deliveries = await endpoint.publish(20)
    for (const delivery of deliveries) await overdue(delivery)
    const { sweep } = suite.process({ mode: 'direct', attemptTimeoutMs: 2_000 })
    const beganAt = performance.now()
    await sweep.runOnce()
    expect(performance.now() - beganAt).to.be.below(1_900)
    expect(suite.temporal.starts.length).to.be.within(14, 19)
    await eventually(async () => expect(await suite.count(`attempts = 5`)).to.be.at.least(1))
    expect(endpoint.receiver.posts.length).to.be.below(7)
  })
})
