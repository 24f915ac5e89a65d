import { expect } from 'chai'
import fc from 'fast-check'
import type { SendOutcome } from '../../../src/incidents/notifications/mail-text.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createVirtualClock, type FakeIncidentTemporal } from '../../helpers/incidents/incident-temporal.ts'
import {
  createIncidentModel,
  readFacts,
  type DeliveryFacts,
  type Facts,
} from '../../helpers/incidents/incident-model.ts'
import { unbounded } from '../../helpers/deliveries/attempts.ts'
import { turns, type Answer, type Operation, type Turn } from '../../helpers/incidents/incident-operations.ts'
import { createIncidentStage, type UnderWay } from '../../helpers/incidents/incident-stage.ts'
import { useDatabase } from '../../helpers/database/database.ts'

/** Fewer than an attempt loses before it is recorded as failed by itself. */
const MAX_LOST = 4

/** A workflow that has more to do at one moment does not come to rest. */
const MAX_TURNS = 20

/** Something to begin with. */
const DELIVERIES_AT_FIRST = 3

/** Long enough for every timer, pause and timeout of incidents to run out. */
const SETTLING_MINUTES = [1, 1, 3, 6, 6, 20, 20]

const now = (operation: Operation): Turn => ({ operation })
const TURN = now({ do: 'turn', crew: { workers: 1, death: null }, answers: ['sent'] })
const FAILURE = now({ do: 'attempt', which: 0, succeeds: false })

describe('incidents, whatever happens to a webhook', () => {
  const database = useDatabase()
  let api: TestApi
  /** Temporal of the webhook under test. */
  let temporal: FakeIncidentTemporal

  before(async () => {
    api = await createTestApi(database.dataSource, {
      incidentWorkflows: { signal: (incident) => temporal.signal(incident) },
    })
  })
  after(() => api.close())

  async function createStage() {
    const { dataSource } = database
    const clock = createVirtualClock()
    const read = (): Promise<Facts> => readFacts(dataSource, world.webhookId)
    const model = createIncidentModel(read, clock)
    let script: Answer[] = ['sent']
    let said = 0
    const say = async (message: Parameters<typeof model.onMessage>[0]): Promise<SendOutcome> => {
      const state = script[said++ % script.length]!
      await model.onMessage(message, state)
      return state === 'sent' ? { state } : { state, error: 'said so' }
    }
    const world = await createIncidentStage({
      dataSource,
      api,
      clock,
      onAttempt: model.onAttempt,
      channels: {
        email: {
          limiter: unbounded,
          send: ({ incidentId, kind }, { address }) =>
            say({ incidentId, kind, channel: 'email', recipient: address }),
        },
        push: {
          limiter: unbounded,
          send: ({ incidentId, kind }, { id }) => say({ incidentId, kind, channel: 'push', recipient: id }),
        },
      },
    })
    temporal = world.temporal
    const answerWith = (next: Answer[]): void => {
      script = next
      said = 0
    }
    return { world, model, answerWith, facts: await read(), ...createHands() }
  }
  /** POSTs that are not answered, those whose worker was lost, and of these what may be begun again. */
  const createHands = () => ({ underWay: [] as UnderWay[], lost: [] as string[], overdue: new Set<string>() })
  type Stage = Awaited<ReturnType<typeof createStage>>

  /** Does it, if there is something to do it to. */
  async function play(stage: Stage, operation: Operation): Promise<void> {
    const { world, model, facts } = stage
    const inState = (...states: string[]): DeliveryFacts[] =>
      facts.deliveries.filter(({ state }) => states.includes(state))
    switch (operation.do) {
      case 'publish':
        return world.publish()
      case 'attempt':
        return (await begin(stage, pick(openFor(stage), operation)))?.answer(operation.succeeds)
      case 'test': {
        const deliveryId = await world.test()
        if (deliveryId === null) return
        model.onTest(deliveryId)
        return (await world.begin(deliveryId, 1))?.answer(operation.succeeds)
      }
      case 'begin': {
        const begun = await begin(stage, pick(openFor(stage), operation))
        if (begun !== null) stage.underWay.push(begun)
        return
      }
      case 'lose': {
        const lost = stage.lost.length < MAX_LOST ? pick(stage.underWay, operation) : undefined
        if (lost === undefined) return
        stage.underWay = stage.underWay.filter((one) => one !== lost)
        stage.lost.push(lost.deliveryId)
        return
      }
      case 'finish': {
        const begun = pick(stage.underWay, operation)
        stage.underWay = stage.underWay.filter((one) => one !== begun)
        return begun?.answer(operation.succeeds)
      }
      case 'exhaust': {
        const delivery = pick(openFor(stage), operation)
        for (let failed = 0; ; failed++) {
          const begun = await begin(stage, delivery, failed)
          if (begun === null) return
          await begun.answer(false)
        }
      }
      case 'retry': {
        const delivery = pick(inState('in_progress', 'waiting', 'failed', 'stopped'), operation)
        if (delivery === undefined) return
        const status = await world.request('POST', `/deliveries/${delivery.id}/retry`)
        expect(status).to.be.oneOf(delivery.isTest ? [404, 409] : [202, 404, 409])
        return
      }
      case 'discard': {
        const delivery = pick(inState('waiting', 'failed'), operation)
        if (delivery === undefined) return
        const status = await world.request('POST', `/deliveries/${delivery.id}/discard`)
        expect(status).to.be.oneOf([200, 404])
        if (status === 200) model.onDiscarded()
        return
      }
      case 'discard failed': {
        const status = await world.request('POST', '/discard-failed')
        expect(status).to.be.oneOf([202, 404])
        if (status === 202 && inState('failed').length > 0) model.onDiscarded()
        return
      }
      case 'disable':
        expect(await world.request('PATCH', '', { enabled: false })).to.be.oneOf([200, 404])
        return
      case 'enable': {
        const status = await world.request('PATCH', '', { enabled: true })
        expect(status).to.be.oneOf([200, 404])
        if (status === 200 && !facts.live) model.onResumed()
        return
      }
      case 'delete':
        expect(await world.request('DELETE', '')).to.be.oneOf([204, 404])
        return
      case 'purge': {
        const delivery = pick(inState('failed', 'stopped'), operation)
        if (delivery !== undefined) await world.purgeUpTo(delivery.id)
        return
      }
      case 'pass':
        return pass(stage, operation.minutes)
      case 'entitle': {
        const { memberId } = world.recipients[1 + operation.member]!
        await world.entitle(memberId!, operation.isEntitled)
        for (const recipient of world.recipients.filter((one) => one.memberId === memberId))
          model.barred[operation.isEntitled ? 'delete' : 'add'](recipient.recipient)
        return
      }
      case 'turn':
        stage.answerWith(operation.answers)
        await world.temporal.turn(operation.crew)
        return
      case 'sweep':
        return world.temporal.sweep()
      case 'forget':
        world.temporal.forget()
        return
      case 'signal again': {
        const incident = pick(facts.incidents, operation)
        if (incident !== undefined && !world.temporal.isAway)
          await world.temporal.signal(await world.label(incident.id))
        return
      }
    }
  }

  /** What an attempt can be made of: also of what lost its worker, once nobody can be posting any more. */
  function openFor({ facts, overdue }: Stage): DeliveryFacts[] {
    return facts.deliveries.filter(({ id, state }) =>
      state === 'in_progress' ? overdue.has(id) : ['pending', 'waiting'].includes(state),
    )
  }

  async function begin(
    stage: Stage,
    delivery: DeliveryFacts | undefined,
    after = 0,
  ): Promise<UnderWay | null> {
    if (delivery === undefined) return null
    stage.overdue.delete(delivery.id)
    return stage.world.begin(delivery.id, delivery.attempts + 1 + after)
  }

  /** No POST outlives its deadline: what is under way ends first. */
  async function pass(stage: Stage, minutes: number): Promise<void> {
    for (const begun of stage.underWay.splice(0)) await begun.answer(false)
    await stage.world.pass(minutes)
    for (const deliveryId of stage.lost) stage.overdue.add(deliveryId)
  }

  async function check(stage: Stage, isDeath = false): Promise<void> {
    const { world, model } = stage
    stage.facts = await model.check(world.recipients, isDeath, await world.overview())
  }

  /** Lets time pass with all workers running. */
  async function settle(stage: Stage): Promise<void> {
    const { temporal } = stage.world
    temporal.isAway = false
    stage.answerWith(['sent'])
    for (const minutes of SETTLING_MINUTES) {
      await pass(stage, minutes)
      await check(stage)
      const lost = stage.facts.deliveries.filter(({ state }) => state === 'in_progress')
      for (const delivery of lost) await (await begin(stage, delivery))?.answer(false)
      await temporal.sweep()
      for (let turns = 0; await temporal.turn({ workers: 1, death: null }); turns++) {
        await check(stage)
        expect(turns, 'turns without a pause').to.be.below(MAX_TURNS)
      }
      await check(stage)
    }
    stage.model.checkSettled(stage.facts)
  }

  async function run(sequence: readonly Turn[]): Promise<void> {
    const stage = await createStage()
    for (let count = 0; count < DELIVERIES_AT_FIRST; count++) await stage.world.publish()
    await check(stage)
    for (const { away = false, operation } of sequence) {
      temporal.isAway = away
      await play(stage, operation)
      await check(stage, operation.do === 'turn' && operation.crew.death !== null)
    }
    await settle(stage)
    // A later sweep is to find nothing of this webhook.
    await database.dataSource.query('UPDATE incident SET sweep_at = NULL')
  }

  it('opens, exhausts and closes them when it should, and notifies each recipient once', () =>
    // To play a failure again, give `fc.assert` the seed and path that it printed. No limit of time: what it cuts off
    // goes on beside the tests that follow.
    fc.assert(fc.asyncProperty(turns, run), { numRuns: 20 }))

  /** What random play comes to seldom. */
  const SEQUENCES: Record<string, Turn[]> = {
    'notifies of a permanent failure when the webhook is switched on again': [
      now({ do: 'exhaust', which: 0 }),
      now({ do: 'disable' }),
      TURN,
      now({ do: 'enable' }),
    ],
    'notifies of failures that begin anew when the webhook is switched on again': [
      now({ do: 'exhaust', which: 0 }),
      TURN,
      now({ do: 'disable' }),
      now({ do: 'pass', minutes: 20 }),
      TURN,
      now({ do: 'enable' }),
      now({ do: 'publish' }),
      TURN,
      FAILURE,
    ],
    'finds a permanent failure that was not signalled': [
      FAILURE,
      TURN,
      now({ do: 'pass', minutes: 5 }),
      TURN,
      { away: true, operation: { do: 'exhaust', which: 0 } },
    ],
    'finds a failure after a rest that was not signalled': [
      FAILURE,
      now({ do: 'attempt', which: 1, succeeds: true }),
      TURN,
      { away: true, ...FAILURE },
    ],
    'stays open when the last delivery is found stopped after its worker was lost': [
      FAILURE,
      now({ do: 'begin', which: 0 }),
      now({ do: 'lose', which: 0 }),
      now({ do: 'disable' }),
      now({ do: 'pass', minutes: 1 }),
      FAILURE,
    ],
    'stays open, and notifies once, when the webhook is switched off and on repeatedly': [
      now({ do: 'exhaust', which: 0 }),
      now({ do: 'pass', minutes: 5 }),
      TURN,
      ...Array.from({ length: 3 }, () => [
        now({ do: 'disable' }),
        TURN,
        now({ do: 'enable' }),
        now({ do: 'publish' }),
        now({ do: 'exhaust', which: 0 }),
        now({ do: 'pass', minutes: 5 }),
        TURN,
      ]).flat(),
    ],
    'stays open when its last failed delivery is purged, and when nothing is left to discard': [
      now({ do: 'exhaust', which: 0 }),
      now({ do: 'disable' }),
      now({ do: 'purge', which: 0 }),
      now({ do: 'discard failed' }),
      now({ do: 'enable' }),
      TURN,
    ],
  }
  for (const [title, sequence] of Object.entries(SEQUENCES)) it(title, () => run(sequence))
})

function pick<T>(from: readonly T[], { which }: { which: number }): T | undefined {
  return from[which % from.length]
}
