import { expect } from 'chai'
import { Registry } from 'prom-client'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { eventually } from '../../helpers/eventually.ts'
import { createDeferredAnswers } from '../../helpers/receivers/receiver.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useInlineAttempts, type TestEndpoint } from '../../helpers/deliveries/use-inline-attempts.ts'
import { proveEndpoint } from '../../helpers/deliveries/attempts.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'

describe('overdue attempts of deliveries that lost their workflow', () => {
  const suite = useInlineAttempts()

  /** Deliveries of which `attempts` are recorded, and the next one is overdue by a minute. */
  async function overdue(endpoint: TestEndpoint, count: number, attempts = 4): Promise<string[]> {
    const ids = (await endpoint.commit(count)).map(({ deliveryId }) => deliveryId)
    const late = { dueInMs: -60_000, workflow: true, sweepInMs: -1 }
    await setRow(suite.database.dataSource, ids, { state: 'waiting', attempts, ...late })
    return ids
  }

  it('are made by the sweeping process in `direct`, without a workflow, and count as late', async () => {
    const endpoint = await suite.endpoint()
    await overdue(endpoint, 20)
    const registry = new Registry()
    const { sweep, endpoints } = suite.process({
      mode: 'direct',
      attempts: { metrics: createMetrics(registry) },
    })
    proveEndpoint(endpoints, endpoint.webhookId)
    expect(await sweep.runOnce()).to.equal(20)
    await eventually(async () =>
      expect(await suite.count(`state = 'completed' AND attempts = 5`)).to.equal(20),
    )
    expect(endpoint.receiver.posts).to.have.length(20)
    expect(suite.temporal.starts).to.deep.equal([])
    await eventually(async () => {
      const { valueOf } = parseExposition(await registry.metrics())
      expect(valueOf('posthorn_retry_lateness_seconds_count')).to.equal(20)
      expect(valueOf('posthorn_retry_lateness_seconds_sum')).to.be.at.least(20 * 60)
    })
  })

  it('hand the next wait to a workflow when they fail', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const [deliveryId] = await overdue(endpoint, 1, 2)
    await suite.process({ mode: 'direct' }).sweep.runOnce()
    await eventually(() => expect(suite.temporal.starts).to.have.length(1))
    const row = await suite.row(deliveryId!)
    expect(row).to.include({ state: 'waiting', attempts: 3 })
    const [started] = suite.temporal.starts
    expect(started).to.include({ deliveryId })
    const { waitMs, ...next } = started!.next
    expect(next).to.deep.equal({ number: 4, dueAtMs: row.next_attempt_at!.getTime() })
    expect(waitMs).to.be.at.most(4_000)
  })

  it('end the delivery at the tenth failure, and need no workflow', async () => {
    const endpoint = await suite.endpoint(() => 503)
    const [deliveryId] = await overdue(endpoint, 1, 9)
    await suite.process({ mode: 'direct' }).sweep.runOnce()
    await eventually(async () =>
      expect(await suite.row(deliveryId!)).to.include({ state: 'failed', attempts: 10 }),
    )
    expect(suite.temporal.starts).to.deep.equal([])
  })

  it('are left to workflows in the other modes', async () => {
    const endpoint = await suite.endpoint()
    for (const mode of ['workflow', 'overflow'] as const) {
      const [deliveryId] = await overdue(endpoint, 1)
      await suite.process({ mode }).sweep.runOnce()
      expect(suite.temporal.starts.map((start) => start.deliveryId)).to.include(deliveryId)
    }
    expect(endpoint.receiver.posts).to.deep.equal([])
  })

  it('are left to a workflow that runs and does not know yet that a retry was requested', async () => {
    const endpoint = await suite.endpoint()
    const [deliveryId] = await overdue(endpoint, 1)
    suite.temporal.running.add(deliveryId!)
    await suite.database.dataSource.query('UPDATE delivery SET retry_requested = true WHERE id = $1', [
      deliveryId,
    ])
    await suite.process({ mode: 'direct' }).sweep.runOnce()
    expect(suite.temporal.woken).to.deep.equal([deliveryId])
    expect(await suite.row(deliveryId!)).to.include({ state: 'waiting', attempts: 4 })
  })

  it('do not hold up the pass where the endpoint hangs, and leave the rest of its backlog to workflows', async () => {
    const answers = createDeferredAnswers()
    const endpoint = await suite.endpoint(answers.answer)
    await overdue(endpoint, 20)
    const { sweep } = suite.process({ mode: 'direct', attemptTimeoutMs: 60_000 })
    await sweep.runOnce()
    expect(await suite.count(`attempts = 5`)).to.equal(0)
    expect(suite.temporal.starts).to.have.length(19)
    await eventually(() => expect(answers.pending()).to.equal(1))
    answers.release(503)
    await eventually(async () => expect(await suite.count(`attempts = 5`)).to.equal(1))
    expect(endpoint.receiver.posts).to.have.length(1)
  })
})
