import { expect } from 'chai'
import type { Slot } from '../../../../src/deliveries/attempt/endpoint.ts'
import { createEndpoints, type Endpoints } from '../../../../src/deliveries/attempt/endpoint-concurrency.ts'
import {
  createFirstAttemptsInTemporal,
  createWorkflowStarts,
} from '../../../../src/deliveries/dispatch/workflow-starts.ts'
import {
  createInlineAttempts,
  type ClaimedDelivery,
} from '../../../../src/deliveries/dispatch/inline-attempts.ts'
import type { RowBatch } from '../../../../src/deliveries/dispatch/delivery-rows.ts'
import type { SweptRow } from '../../../../src/deliveries/protocol/sweep.ts'
import { createMetrics } from '../../../../src/observability/metrics.ts'
import { createShutdown } from '../../../../src/shutdown.ts'
import { silentLogger } from '../../../helpers/silent-logger.ts'
import { createVirtualTime } from './simulation/virtual-time.ts'

const NO_ROWS = { add: () => undefined, flush: () => Promise.resolve() }

/** Deliveries of as many webhooks. */
const deliveries = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    organisationId: 'org_1',
    webhookId: `webhook ${index}`,
    deliveryId: `delivery ${index}`,
    eventKey: 'invoice:paid',
    url: 'https://a.example/',
    attempts: 0,
    nextAttemptAt: null,
    dueInMs: 0,
    sweepAt: new Date(),
  }))

function workflowStarts(time: ReturnType<typeof createVirtualTime>, givenBack: RowBatch<SweptRow> = NO_ROWS) {
  const endpoints = createEndpoints({ maxLimit: 50, timers: time })
  const begun: string[] = []
  const starts = createWorkflowStarts({
    workflows: { start: ({ deliveryId }) => Promise.resolve(begun.push(deliveryId) > 0) },
    endpoints,
    logger: silentLogger,
    metrics: createMetrics(),
    timers: time,
    concurrency: 200,
    isServing: () => true,
    started: NO_ROWS,
    givenBack,
    inTemporal: createFirstAttemptsInTemporal(time.nowMs),
    shutdown: createShutdown(50),
    onRefused: () => undefined,
  })
  return { endpoints, begun, starts }
}

function beginPost(endpoints: Endpoints, webhookId: string): Slot {
  const slot = endpoints.acquire(webhookId, 'an earlier one')
  if (!('begin' in slot)) throw new Error('an endpoint has a slot at first')
  slot.begin()
  return slot
}

describe('what begins first attempts, on a virtual clock', () => {
  it('makes those at endpoints that never answered as their shared slots are free, and no more at once', async () => {
    const time = createVirtualTime()
    const begunAtMs: number[] = []
    let [inFlight, most, released] = [0, 0, 0]
    const attempts = createInlineAttempts({
      async makeAttempt({ webhookId }, _signals, inline) {
        begunAtMs.push(time.nowMs())
        most = Math.max(most, ++inFlight)
        inline!.slot.begin()
        attempts.wake(webhookId)
        await time.sleep(20)
        inFlight--
        inline!.slot.release({ succeeded: true, isTimeout: false })
        return { state: 'completed', attempts: 1, failureCode: null, statusCode: 200 }
      },
      endpoints: createEndpoints({ maxLimit: 50, timers: time }),
      webhookChanges: { hasChangedSince: () => false } as never,
      logger: silentLogger,
      timers: time,
      shutdown: createShutdown(50),
      slots: 256,
      onReleased: () => released++,
      onEnded: () => undefined,
    })
    const claim = { body: Buffer.alloc(0), claimedAtMs: 0 } as ClaimedDelivery['claim']
    for (const delivery of deliveries(500)) attempts.add({ ...delivery, claim })
    await time.run(200)
    expect([begunAtMs.length, most, released]).to.deep.equal([500, 64, 0])
  })

  for (const [what, isTimeout, startedAtOnce] of [
    ['at once at endpoints that take their time to answer', false, 10],
    ['one after the other at endpoints that hang', true, 1],
  ] as const)
    it(`starts workflows ${what}`, async () => {
      const time = createVirtualTime()
      const { endpoints, begun, starts } = workflowStarts(time)
      for (const delivery of deliveries(10)) {
        beginPost(endpoints, delivery.webhookId).release({ succeeded: !isTimeout, isTimeout })
        if (!isTimeout) endpoints.noteFault(delivery.webhookId)
        starts.add({ ...delivery, heldUntilMs: 5_000 })
      }
      await time.run(0)
      expect(begun).to.have.length(startedAtOnce)
      await time.run(1_000)
      expect(begun).to.have.length(10)
    })

  it('give back at once what finds no room at an endpoint whose last POST timed out more than a minute ago', async () => {
    const time = createVirtualTime()
    const givenBack: SweptRow[] = []
    const { endpoints, begun, starts } = workflowStarts(time, {
      ...NO_ROWS,
      add: (row) => givenBack.push(row),
    })
    const [{ webhookId } = { webhookId: '' }] = deliveries(1)
    const slot = beginPost(endpoints, webhookId)
    await time.run(1_000)
    slot.release({ succeeded: false, isTimeout: true })
    await time.run(62_000)
    for (const delivery of deliveries(60)) starts.add({ ...delivery, webhookId, heldUntilMs: 66_000 })
    await time.run(62_000)
    expect(begun.length + starts.queued() + givenBack.length).to.equal(60)
  })
})
