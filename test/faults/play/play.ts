import { setTimeout as delay } from 'node:timers/promises'
import { act } from './act.ts'
import { calmDown } from './calm-down.ts'
import { nowMs } from './clock.ts'
import { injectFault } from './inject-fault.ts'
import type { Plan, PlannedFault } from './plan.ts'
import { readFacts } from './read-facts.ts'
import { say } from './say.ts'
import type { PlayRecord, ReceivedMail } from './record.ts'
import { ATTEMPT_TIMEOUT_MS, createPlayWorld, NOTIFY_AFTER_MS, type PlayWorld } from './world.ts'

/** Plays a plan on real processes, lets everything calm down, and returns what became of it. */
export async function play(plan: Plan): Promise<PlayRecord> {
  const world = await createPlayWorld(plan)
  try {
    say('the processes run')
    await playPlan(world, plan)
    say('the last fault is over')
    await calmDown(world, plan)
    const facts = await readFacts(world.dataSource)
    const processes = await Promise.all(world.processes.map((played) => played.finish()))
    say('the processes have ended')
    return {
      seed: plan.seed,
      attemptTimeoutMs: ATTEMPT_TIMEOUT_MS,
      notifyAfterMs: NOTIFY_AFTER_MS,
      webhooks: world.webhooks,
      posts: world.endpoints.ledger,
      publications: world.publications,
      actions: world.actions,
      faults: world.faults,
      facts,
      mails: world.mail.mails.flatMap(receivedMails),
      processes,
    }
  } finally {
    await Promise.all(world.processes.map((played) => played.finish()))
    await world.close()
  }
}

async function playPlan(world: PlayWorld, plan: Plan): Promise<void> {
  const begunAt = nowMs()
  world.endpoints.begin()
  const failures: unknown[] = []
  const underWay: Promise<void>[] = []
  const begin = (work: Promise<void>): void =>
    void underWay.push(work.catch((error: unknown) => void failures.push(error)))
  for (const track of plan.tracks) begin(playTrack(world, track, begunAt + plan.durationMs))
  for (const { atMs, action } of plan.actions) {
    await delay(Math.max(0, begunAt + atMs - nowMs()))
    begin(act(world, action))
  }
  await Promise.all(underWay)
  if (failures.length > 0) throw new Error(`the play itself went wrong: ${failures.map(String).join('; ')}`)
}

async function playTrack(world: PlayWorld, track: readonly PlannedFault[], until: number): Promise<void> {
  for (const fault of track) {
    await delay(fault.afterMs)
    if (nowMs() > until) return
    await injectFault(world, fault)
  }
}

function receivedMails(mail: PlayWorld['mail']['mails'][number]): ReceivedMail[] {
  const id = /^<inc-[^.]+\.\d\.([^.@]+)@/.exec(mail.parsed.messageId ?? '')?.[1] ?? 'none'
  return mail.envelope.to.map((recipient) => ({ id, recipient }))
}
