import { expect } from 'chai'
import type { CommittedDelivery } from '../../src/deliveries/protocol/commit-events.ts'
import { deliveryWorkflowId } from '../../src/temporal/workflows.ts'
import { createTerminateIfStuck } from '../../src/temporal/workflow-progress.ts'
import type { DeliverEventResult } from '../../src/domain/workflow-inputs.ts'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import { eventually } from '../helpers/eventually.ts'
import { readableHistory } from '../helpers/temporal/history.ts'
import { createReceiver } from '../helpers/receivers/receiver.ts'
import { terminateAtRest, useTemporal } from '../helpers/temporal/time-skipping.ts'

describe('deliverEvent, on a time-skipping server', () => {
  const suite = useAttempts()
  const { database, answerWith, publish } = suite
  const temporal = useTemporal()

  /** Starts the delivery as the dispatcher would, lets `meanwhile` act, and awaits the end. */
  const deliver = (
    delivery: CommittedDelivery,
    meanwhile: () => Promise<void> = () => Promise.resolve(),
  ): Promise<DeliverEventResult> =>
    temporal.withWorkflows(suite.dependencies, async (workflows) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      await meanwhile()
      return temporal.resultOf(delivery.deliveryId)
    })

  const stateOf = async (deliveryId: string) => {
    const [row] = await database.dataSource.query<{ state: string; attempts: number }[]>(
      'SELECT state, attempts FROM delivery WHERE id = $1',
      [deliveryId],
    )
    return row!
  }

  it('sends the same bytes, id and signature on every attempt', async () => {
    answerWith((index) => (index < 3 ? 500 : 200))
    const { delivery } = await publish()
    await deliver(delivery)
    const posts = suite.receiver.postsOf(delivery.deliveryId)
    expect(posts).to.have.length(4)
    expect(new Set(posts.map((post) => post.body.toString('hex'))).size).to.equal(1)
    expect(new Set(posts.map((post) => post.headers['x-webhook-signature'])).size).to.equal(1)
  })

  for (const succeeding of [1, 3, 10]) {
    it(`stops after success on attempt ${succeeding}`, async () => {
      answerWith((index) => (index + 1 === succeeding ? 204 : 500))
      const { delivery } = await publish()
      expect(await deliver(delivery)).to.deep.equal({ state: 'completed', attempts: succeeding })
      expect(suite.receiver.postsOf(delivery.deliveryId)).to.have.length(succeeding)
      expect(await stateOf(delivery.deliveryId)).to.deep.equal({ state: 'completed', attempts: succeeding })
    })
  }

  it('takes the URL that the webhook has at the time of each attempt', async () => {
    answerWith(() => 500)
    const { delivery, webhook } = await publish()
    const moved = await createReceiver()
    await deliver(delivery, async () => {
      await temporal.environment.sleep('6 minutes')
      await database.dataSource.query('UPDATE webhook SET url = $2 WHERE id = $1', [webhook.id, moved.url])
    })
    expect(suite.receiver.postsOf(delivery.deliveryId)).to.have.length(6)
    expect(moved.postsOf(delivery.deliveryId)).to.have.length(1)
    await moved.close()
  })

  it('runs one workflow for two starts, and one more after its end reads that the row is final', async () => {
    const { delivery } = await publish()
    await temporal.withWorkflows(suite.dependencies, async (workflows) => {
      const first = { number: 1, dueAtMs: null }
      await Promise.all([workflows.start(delivery, first), workflows.start(delivery, first)])
      await temporal.resultOf(delivery.deliveryId)
      expect(await workflows.start(delivery, first)).to.equal(true)
      expect(await temporal.resultOf(delivery.deliveryId)).to.deep.equal({ state: 'completed', attempts: 1 })
      const terminateIfStuck = createTerminateIfStuck(() => temporal.environment.client)
      expect(await terminateIfStuck(deliveryWorkflowId(delivery.deliveryId))).to.deep.equal({ state: 'gone' })
    })
    expect(suite.receiver.postsOf(delivery.deliveryId)).to.have.length(1)
  })

  it('continues from the recorded attempt when it is started again, and waits for the remaining time', async () => {
    answerWith((index) => (index < 5 ? 500 : 200))
    const { delivery } = await publish()
    const result = await temporal.withWorkflows(suite.dependencies, async (workflows) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      // Into the first wait that is long enough to be stopped in it.
      await temporal.environment.sleep('16 seconds')
      await eventually(async () => expect(await stateOf(delivery.deliveryId)).to.include({ attempts: 5 }))
      await terminateAtRest(temporal.handleOf(delivery.deliveryId))
      const dueAtMs = (await temporal.environment.currentTimeMs()) + 600_000
      await workflows.start(delivery, { number: 6, dueAtMs })
      const continued = await temporal.resultOf(delivery.deliveryId)
      expect(await temporal.environment.currentTimeMs()).to.be.at.least(dueAtMs)
      return continued
    })
    expect(result).to.deep.equal({ state: 'completed', attempts: 6 })
    expect(suite.receiver.postsOf(delivery.deliveryId)).to.have.length(6)
  })

  it('writes neither payload, secret, query, long path segments nor receiver text into its history', async () => {
    answerWith((index, _post, response) => {
      response.writeHead(index === 0 ? 500 : 200).end('canary-response')
      return null
    })
    const { delivery, webhook } = await publish('/T0123456789abcdefCanary?token=canary-token')
    await deliver(delivery)
    const history = await temporal.handleOf(delivery.deliveryId).fetchHistory()
    const text = readableHistory(history)
    expect(text).to.include(delivery.deliveryId)
    const answered = ['canary-response', 'canary-token', 'abcdefCanary']
    for (const canary of ['cus_1', 'trace-1', webhook.signingSecret, 'sha256=', ...answered])
      expect(text, canary).not.to.include(canary)
  })
})
