import type { TestDependencies } from '../helpers/deliveries/attempts.ts'
import { expect } from 'chai'
import { discard as discardRows } from '../../src/deliveries/protocol/change-deliveries.ts'
import { requestRetry, switchOff } from '../helpers/deliveries/request-retry.ts'
import type { CommittedDelivery } from '../../src/deliveries/protocol/commit-events.ts'
import { deliveryWorkflowId, type DeliveryWorkflows } from '../../src/temporal/workflows.ts'
import type { DeliverEventInput, DeliverEventResult } from '../../src/domain/workflow-inputs.ts'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import { eventually } from '../helpers/eventually.ts'
import { useTemporal } from '../helpers/temporal/time-skipping.ts'

describe('retries and stops of a delivery, on a time-skipping server', () => {
  const suite = useAttempts()
  const { database, answerWith } = suite
  const temporal = useTemporal()
  let dependencies: TestDependencies
  let delivery: CommittedDelivery
  let isEndpointFull = false

  before(() => {
    const { endpoints } = suite.dependencies
    dependencies = {
      ...suite.dependencies,
      endpoints: {
        ...endpoints,
        // Longer than a busy machine takes for a signal: a timer that fires while it is being cancelled stops this server.
        acquireSoon: (...args) =>
          isEndpointFull ? Promise.resolve({ retryAfterMs: 60_000 }) : endpoints.acquireSoon(...args),
      },
    }
  })
  beforeEach(async () => {
    isEndpointFull = false
    answerWith(() => 500)
    delivery = (await suite.publish()).delivery
  })

  type Act = {
    workflows: DeliveryWorkflows
    retry: () => Promise<void>
    result: () => Promise<DeliverEventResult>
  }

  /** Starts the delivery and lets `act` do things to it while a worker serves it. */
  const scene = <T>(act: (tools: Act) => Promise<T>): Promise<T> =>
    temporal.withWorkflows(dependencies, async (workflows) => {
      await workflows.start(delivery, { number: 1, dueAtMs: null })
      return act({
        workflows,
        async retry() {
          const asked = await ask()
          if (asked !== null) await workflows.wake(delivery, asked.attempts)
        },
        result: () => temporal.resultOf(delivery.deliveryId),
      })
    })
  const ask = () =>
    requestRetry(database.dataSource, delivery.organisationId, delivery.webhookId, delivery.deliveryId)
  const switchWebhookOff = () =>
    database.dataSource.transaction((manager) =>
      switchOff(manager, delivery.organisationId, delivery.webhookId),
    )
  const posts = () => suite.receiver.postsOf(delivery.deliveryId)
  const row = async () => {
    const [found] = await database.dataSource.query<{ state: string; attempts: number }[]>(
      'SELECT state, attempts FROM delivery WHERE id = $1',
      [delivery.deliveryId],
    )
    return found!
  }
  const triggers = async () => {
    const found = await database.dataSource.query<{ trigger: string }[]>(
      'SELECT trigger FROM attempt WHERE delivery_id = $1 ORDER BY number',
      [delivery.deliveryId],
    )
    return found.map(({ trigger }) => trigger)
  }
  const reaches = (state: string, attempts: number) =>
    eventually(async () => expect(await row()).to.deep.equal({ state, attempts }))

  it('waiting → retry: makes and counts an attempt at once, and continues the schedule', async () => {
    answerWith((index) => (index === 7 ? 200 : 500))
    await scene(async ({ retry, result }) => {
      await temporal.environment.sleep('16 seconds')
      await reaches('waiting', 5)
      await retry()
      await reaches('waiting', 6)
      await temporal.environment.sleep('29 minutes')
      expect(posts()).to.have.length(6)
      expect(await result()).to.deep.equal({ state: 'completed', attempts: 8 })
    })
    expect(await triggers()).to.deep.equal([
      ...Array<string>(5).fill('schedule'),
      'retry',
      'schedule',
      'schedule',
    ])
  })

  it('waiting → retry by a bare signal, as from the Temporal UI: does the same', async () => {
    await scene(async ({ result }) => {
      await temporal.environment.sleep('16 seconds')
      await reaches('waiting', 5)
      answerWith(() => 200)
      await temporal.handleOf(delivery.deliveryId).signal('retry')
      expect(await result()).to.deep.equal({ state: 'completed', attempts: 6 })
    })
    expect((await triggers()).at(-1)).to.equal('retry')
  })

  it('in progress → retry: is remembered, and acts if that attempt fails', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    answerWith(async (index) => {
      if (index === 0) await held
      return index < 2 ? 500 : 200
    })
    await scene(async ({ retry, result }) => {
      await eventually(() => expect(posts()).to.have.length(1))
      await retry()
      release()
      expect(await result()).to.deep.equal({ state: 'completed', attempts: 3 })
    })
    expect(await triggers()).to.deep.equal(['schedule', 'retry', 'schedule'])
  })

  it('last attempt in progress → retry: makes one more attempt', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    answerWith(async (index) => {
      if (index === 9) await held
      return 500
    })
    await scene(async ({ retry, result }) => {
      const ended = result()
      await eventually(() => expect(posts()).to.have.length(10))
      await retry()
      release()
      expect(await ended).to.deep.equal({ state: 'failed', attempts: 11 })
    })
    expect(posts()).to.have.length(11)
    expect(await row()).to.deep.equal({ state: 'failed', attempts: 11 })
  })

  for (const [outcome, status] of [
    ['completed', 200],
    ['failed', 500],
  ] as const) {
    it(`permanently failed → retry: starts a new run with one attempt, then ${outcome}`, async () => {
      await scene(async ({ retry, result }) => {
        expect(await result()).to.deep.equal({ state: 'failed', attempts: 10 })
        answerWith(() => status)
        await retry()
        expect(await result()).to.deep.equal({ state: outcome, attempts: 11 })
      })
      expect(posts()).to.have.length(11)
      expect((await triggers()).at(-1)).to.equal('retry')
    })
  }

  it('waiting → stopped by disabling the webhook: ends the workflow when signalled, and posts nothing', async () => {
    await scene(async ({ workflows, result }) => {
      await temporal.environment.sleep('16 seconds')
      await reaches('waiting', 5)
      await switchWebhookOff()
      expect(await row()).to.deep.equal({ state: 'stopped', attempts: 5 })
      await workflows.stop(delivery.deliveryId)
      expect(await result()).to.deep.equal({ state: 'stopped', attempts: 5 })
    })
    expect(posts()).to.have.length(5)
  })

  it('disabled and enabled again while the stop is in progress: posts nothing that was stopped', async () => {
    await scene(async ({ workflows, result }) => {
      await temporal.environment.sleep('16 seconds')
      await reaches('waiting', 5)
      await switchWebhookOff()
      await database.dataSource.query('UPDATE webhook SET enabled = true WHERE id = $1', [delivery.webhookId])
      // The webhook is live again before the workflow hears of anything; its timer comes first.
      await temporal.environment.sleep('6 minutes')
      await workflows.stop(delivery.deliveryId)
      expect(await result()).to.deep.equal({ state: 'stopped', attempts: 5 })
    })
    expect(posts()).to.have.length(5)
  })

  it('a stop signal for a row that is not stopped: ends nothing, and the wait continues', async () => {
    await scene(async ({ workflows, result }) => {
      await temporal.environment.sleep('16 seconds')
      await reaches('waiting', 5)
      const wokenAt = await temporal.environment.currentTimeMs()
      await workflows.stop(delivery.deliveryId)
      answerWith(() => 200)
      expect(await result()).to.deep.equal({ state: 'completed', attempts: 6 })
      expect((await temporal.environment.currentTimeMs()) - wokenAt).to.be.above(200_000)
    })
  })

  for (const [when, isWokenAgain] of [
    ['while no slot is free', false],
    ['while no slot is free, and again when one is', true],
  ] as const)
    it(`woken without a reason ${when}: still posts nothing before it is due`, async () => {
      await scene(async ({ workflows, result }) => {
        await temporal.environment.sleep('16 seconds')
        await reaches('waiting', 5)
        isEndpointFull = true
        await workflows.stop(delivery.deliveryId)
        await temporal.environment.sleep('10 seconds')
        isEndpointFull = false
        if (isWokenAgain) await workflows.stop(delivery.deliveryId)
        await temporal.environment.sleep('2 minutes')
        expect(posts()).to.have.length(5)
        answerWith(() => 200)
        expect(await result()).to.deep.equal({ state: 'completed', attempts: 6 })
      })
    })

  it('succeeded by another run while no slot is free: still posts nothing before it is due', async () => {
    answerWith(() => 200)
    const { organisationId, webhookId, deliveryId } = delivery
    await temporal.withWorkflows(dependencies, async (_workflows, taskQueue) => {
      // Here, where the clock of the database is the server's.
      await database.dataSource.query(
        `UPDATE delivery SET state = 'waiting', attempts = 5, next_attempt_at = delivery_now() + interval '5 minutes' WHERE id = $1`,
        [deliveryId],
      )
      const next = { number: 6, dueAtMs: null }
      const wakeAtMs = await temporal.environment.currentTimeMs()
      const snapshot = {
        state: 'waiting',
        attempts: 5,
        lastOutcome: 'HTTP 500',
        nextAttemptAtMs: null,
      } as const
      // What a cancelled run of release 0.1 leaves that was woken without a reason, and then deferred.
      const oldNext = { ...next, wakeAtMs, onlyIfDue: true }
      const input: DeliverEventInput = {
        ...{ organisationId, webhookId, deliveryId, leadMs: 0, next, kind: 'slow' },
        continued: { next: oldNext, snapshot },
      }
      const workflowId = deliveryWorkflowId(deliveryId)
      await temporal.environment.client.workflow.start('deliverEvent', {
        workflowId,
        taskQueue,
        args: [input],
      })
      await temporal.environment.sleep('2 minutes')
      expect(posts()).to.have.length(0)
      expect(await temporal.resultOf(deliveryId)).to.deep.equal({ state: 'completed', attempts: 6 })
    })
  })

  it('due while no slot is free: makes and counts one attempt once a slot is free', async () => {
    answerWith(() => 200)
    isEndpointFull = true
    await scene(async ({ result }) => {
      await temporal.environment.sleep('5 seconds')
      expect(posts()).to.have.length(0)
      isEndpointFull = false
      expect(await result()).to.deep.equal({ state: 'completed', attempts: 1 })
    })
    expect(posts()).to.have.length(1)
  })

  const discard = async (): Promise<void> => {
    const { organisationId, webhookId, deliveryId } = delivery
    const of = { organisationId, webhookId, ids: [deliveryId] }
    expect(await discardRows(database.dataSource, of)).to.have.length(1)
  }

  it('stopped → retry: makes an attempt at once, and continues the schedule to the tenth attempt', async () => {
    await scene(async ({ workflows, retry, result }) => {
      await temporal.environment.sleep('16 seconds')
      await reaches('waiting', 5)
      await discard()
      await workflows.stop(delivery.deliveryId)
      expect(await result()).to.deep.equal({ state: 'stopped', attempts: 5 })
      await retry()
      await reaches('waiting', 6)
      await temporal.environment.sleep('29 minutes')
      expect(await row()).to.deep.equal({ state: 'waiting', attempts: 6 })
      await temporal.environment.sleep('2 minutes')
      await reaches('waiting', 7)
      expect(await result()).to.deep.equal({ state: 'failed', attempts: 10 })
    })
    expect(posts()).to.have.length(10)
    expect((await triggers())[5]).to.equal('retry')
  })

  it('completed → retry: is refused, and a signal by hand posts nothing', async () => {
    answerWith(() => 200)
    await scene(async ({ workflows, result }) => {
      await result()
      expect(await ask()).to.equal(null)
      await workflows.wake(delivery, 1)
      expect(await result()).to.deep.equal({ state: 'completed', attempts: 1 })
    })
    expect(posts()).to.have.length(1)
  })
})
