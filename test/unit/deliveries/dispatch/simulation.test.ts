import { expect } from 'chai'
import { createDispatcher, type FirstAttemptMode } from '../../../../src/deliveries/dispatch/dispatcher.ts'
import { createMutant, MUTANTS } from './simulation/mutants.ts'
import { play } from './simulation/play.ts'
import { AUDIENCE } from './simulation/rows.ts'
import { createWorld, type Behaviour } from './simulation/world.ts'

/** Seconds of the machine's time for scenarios, and more of them by this variable. */
const SECONDS = Number(process.env['POSTHORN_SIMULATION_SECONDS'] ?? 4)

/** On a busy machine too. */
const MIN_SCENARIOS = 8

/** A defect has to show within so many scenarios. */
const MAX_SCENARIOS = 400

function report(line: string): void {
  process.stdout.write(`${line}\n`)
}

describe('several processes that dispatch deliveries, simulated', () => {
  it('begin or return whatever they hold, and leave nothing behind', async function () {
    this.timeout((SECONDS + 60) * 1_000)
    const endsAtMs = performance.now() + SECONDS * 1_000
    const totals = { scenarios: 0, deliveries: 0, posts: 0, virtualMs: 0 }
    for (let seed = 0; seed < MIN_SCENARIOS || performance.now() < endsAtMs; seed++) {
      const { violations, deliveries, posts, virtualMs } = await play(seed, createDispatcher)
      expect(violations, `POSTHORN_SIMULATION_SEED=${seed}`).to.deep.equal([])
      totals.scenarios++
      totals.deliveries += deliveries
      totals.posts += posts
      totals.virtualMs += virtualMs
    }
    report(
      `      ${totals.scenarios} scenarios, ${totals.deliveries} deliveries, ${totals.posts} POSTs, ` +
        `${Math.round(totals.virtualMs / 3_600_000)} hours`,
    )
  })

  for (const mutant of MUTANTS)
    it(`show the defect of a dispatcher that ${mutant.name}`, async function () {
      const create = await createMutant(mutant)
      let found: string | undefined
      for (let scenarios = 1; scenarios <= MAX_SCENARIOS && found === undefined; scenarios++) {
        found = (await play((mutant.firstSeed ?? 0) + scenarios - 1, create)).violations[0]
        if (found !== undefined) report(`      after ${scenarios} scenarios: ${found}`)
      }
      expect(found, 'a violation').not.to.equal(undefined)
    })
})

describe('first attempts by workflows, simulated', () => {
  const times = (count: number, webhookId: string): string[] => Array<string>(count).fill(webhookId)

  function createProcess(mode: FirstAttemptMode, concurrency = 40) {
    const world = createWorld({ seed: 1, mode, slots: 64, concurrency, create: createDispatcher })
    const process = world.start()
    /** Returns the waits of the last `count` deliveries for their POSTs. */
    const waits = (count: number): number[] =>
      [...world.rows.table.values()].slice(-count).map((row) => (row.beganAtMs ?? Infinity) - row.createdAtMs)
    const publish = (webhookIds: readonly string[]): void => void process.publish(webhookIds)
    return { ...world, publish, dispatcher: process.dispatcher, waits }
  }

  /** A process, and `known`, an endpoint with slots for some 40 POSTs at once. */
  async function createKnown(behaviour: Behaviour) {
    const process = createProcess('workflow')
    const { time, behaviours, publish } = process
    publish(times(40, 'known'))
    await time.run(5_000)
    behaviours.set('known', behaviour)
    publish(['known'])
    await time.run(10_000)
    return process
  }

  for (const [behaviour, count, withinMs] of [
    ['fast', 400, 1_000],
    ['slow', 60, 3_000],
  ] as const)
    it(`begin as slots and Temporal have room, ${count} at a ${behaviour} endpoint`, async () => {
      const { publish, time, waits } = await createKnown(behaviour)
      for (let event = 0; event < count; event++) publish(['known'])
      await time.run(20_000)
      expect(Math.max(...waits(count))).to.be.below(withinMs)
    })

  it('do not wait behind those of endpoints without a free slot', async () => {
    const { publish, time, behaviours, waits } = await createKnown('fast')
    for (const webhookId of ['new', 'newer', 'newest']) {
      behaviours.set(webhookId, 'hangs')
      for (let event = 0; event < 100; event++) publish([webhookId])
    }
    await time.run(10_200)
    publish(['known'])
    await time.run(20_000)
    expect(waits(1)[0]).to.be.below(500)
  })

  it('do not wait behind rows of endpoints whose only slot is for an attempt in Temporal', async () => {
    const { publish, start, time, state, behaviours, waits } = createProcess('workflow', 300)
    const webhookIds = Array.from({ length: 300 }, (_, index) => `new-${index}`)
    for (const webhookId of webhookIds) behaviours.set(webhookId, 'hangs')
    state.isTemporalSlow = true
    publish([...webhookIds, ...webhookIds])
    await time.run(1_000)
    state.isTemporalSlow = false
    void start(false).publish(['another'])
    await time.run(1_500)
    expect(waits(1)[0]).to.be.below(500)
  })

  it('are made inline in `overflow` where a slow Temporal has those of an endpoint that has not answered', async () => {
    const { state, time, publish, waits } = createProcess('overflow')
    state.isTemporalSlow = true
    for (let event = 0; event < 100; event++) publish(['new'])
    await time.run(10_000)
    expect(waits(100).sort((one, other) => one - other)[50]).to.be.below(1_000)
  })

  it('are made inline in `overflow` as soon as Temporal is behind, also those whose starts wait', async () => {
    const { state, time, publish, waits } = createProcess('overflow', 2)
    for (let event = 0; event < 15; event++) publish(['known'])
    await time.run(5_000)
    state.isTemporalSlow = true
    for (let event = 0; event < 30; event++) publish(['known'])
    await time.run(15_000)
    // Two starts are in flight.
    expect(waits(30).sort((one, other) => one - other)[27]).to.be.below(350)
  })

  it('are held from the commit on only where all of it has room, and Temporal is available', async () => {
    const { dispatcher, state } = await createKnown('fast')
    const holdMs = (count: number) => dispatcher.reserve([AUDIENCE], count).sweepAfterMs
    expect([holdMs(200), holdMs(201)]).to.deep.equal([4_000, 0])
    state.isTemporalAway = true
    expect(holdMs(1)).to.equal(0)
  })
})
