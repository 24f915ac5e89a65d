import type { createDispatcher, FirstAttemptMode } from '../../../../../src/deliveries/dispatch/dispatcher.ts'
import { createWorld, type Behaviour, type SimulatedProcess, type World } from './world.ts'

type Create = typeof createDispatcher

/**
 * What was held up is attempted by then, and everything that was due: a delivery that is deferred for 40 s may find the
 * only slot of an endpoint that has just recovered in use, and is deferred once more.
 */
const AT_REST_MS = 120_000

const MODES: readonly FirstAttemptMode[] = ['direct', 'overflow', 'workflow']
const BEHAVIOURS: readonly Behaviour[] = ['fast', 'fast', 'refuses', 'slow', 'hangs']

export type Played = { violations: string[]; deliveries: number; posts: number; virtualMs: number }

/** Plays one scenario that the seed draws: load and faults for a while, then only fast endpoints, and rest. */
export async function play(seed: number, create: Create): Promise<Played> {
  const world = createWorld({
    seed,
    create,
    mode: MODES[seed % 3]!,
    slots: [2, 8, 64, 256][seed % 4]!,
    concurrency: [2, 5, 40][Math.floor(seed / 3) % 3]!,
  })
  if (seed % 4 === 0) return playManyHanging(world)
  return seed % 8 === 1 ? playStops(world) : playFaults(world)
}

/** Endpoints that hang together, recover, and get no more events. */
async function playManyHanging(world: World): Promise<Played> {
  const { random, time, behaviours } = world
  const processes = [world.start(), world.start()]
  const webhookIds = Array.from({ length: 4 + random.below(20) }, (_, index) => `hook-${index}`)
  for (const webhookId of webhookIds) behaviours.set(webhookId, 'hangs')
  for (let round = 0; round < 3; round++) {
    for (const webhookId of webhookIds) void random.of(processes).publish([webhookId])
    await time.run(time.nowMs() + random.between(3_000, 8_000))
  }
  await time.run(time.nowMs() + random.between(0, 20_000))
  return end(world)
}

/** Processes that are stopped under load, one after the other. */
async function playStops(world: World): Promise<Played> {
  const { random, time } = world
  const webhookIds = ['hook-0', 'hook-1', 'hook-2']
  let process = world.start()
  world.start()
  for (let round = 0; round < 6; round++) {
    for (let burst = 0; burst < 4; burst++) {
      void process.publish(Array.from({ length: 20 }, () => random.of(webhookIds)))
      await time.run(time.nowMs() + random.between(1, 60))
    }
    void process.stop()
    process = world.start()
    await time.run(time.nowMs() + random.between(10, 500))
  }
  return end(world)
}

async function playFaults(world: World): Promise<Played> {
  const { random, time, state, behaviours, cluster, rows } = world
  for (let count = 2 + random.below(2); count > 0; count--) world.start()
  if (random.chance(0.3)) world.start(false)
  const webhookIds = Array.from({ length: 2 + random.below(8) }, (_, index) => `hook-${index}`)
  const alive = (): SimulatedProcess[] => world.processes.filter(({ isAlive }) => isAlive)
  const endsAtMs = random.between(8_000, 25_000)
  while (time.nowMs() < endsAtMs) {
    const webhookId = random.of(webhookIds)
    const process = random.of(alive())
    switch (random.below(12)) {
      case 0:
        behaviours.set(webhookId, random.of(BEHAVIOURS))
        break
      case 1:
        // While some of its deliveries are claimed, and wait for a slot.
        void process.publish(Array.from({ length: 20 }, () => webhookId))
        await time.run(time.nowMs() + random.between(1, 40))
        process.change(webhookId)
        break
      case 2:
        if (alive().filter(({ hasWorker }) => hasWorker).length > 1 && random.chance(0.6)) {
          if (random.chance(0.3)) process.die()
          else void process.stop()
          world.start(process.hasWorker)
        }
        break
      case 3:
        state.isTemporalAway = random.chance(0.4)
        state.isTemporalSlow = random.chance(0.4)
        break
      case 4:
        state.isDatabaseFailing = random.chance(0.3)
        break
      case 5:
        cluster.terminate(random.of([...rows.table.keys(), '']))
        break
      default:
        void process.publish(Array.from({ length: 1 + random.below(12) }, () => random.of(webhookIds)))
    }
    await time.run(time.nowMs() + random.between(10, 800))
  }
  return end(world)
}

async function end(world: World): Promise<Played> {
  const { time, state, behaviours, violations, rows } = world
  Object.assign(state, { isDatabaseFailing: false, isTemporalAway: false, isTemporalSlow: false })
  for (const webhookId of behaviours.keys()) behaviours.set(webhookId, 'fast')
  for (const endsAtMs = time.nowMs() + AT_REST_MS; time.nowMs() < endsAtMs && !world.isAtRest();)
    await time.run(time.nowMs() + 1_000)
  world.checkAtRest()
  return { violations, deliveries: rows.table.size, posts: state.posts, virtualMs: time.nowMs() }
}
