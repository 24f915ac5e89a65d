import { setTimeout as delay } from 'node:timers/promises'
import { act, publish } from './act.ts'
import { checkLateness } from './checks/lateness.ts'
import { nowMs, say } from './clock.ts'
import { createDice } from './dice.ts'
import { followStream } from './follow-stream.ts'
import { injectFault, watchMachine } from './inject-fault.ts'
import { measureQueue } from './measure-queue.ts'
import { ATTEMPT_TIMEOUT_MS, NOTIFY_AFTER_MS, type Plan, type PlannedFault, VICTIM } from './plan.ts'
import { readFacts } from './read-facts.ts'
import type { Facts, PlayRecord, PlayRun, ReceivedMail } from './record.ts'
import { unfinished } from './checks/unfinished.ts'
import { createPlayWorld, type PlayWorld } from './world.ts'

/** Once the last fault is over all comes to its end by itself: three minutes, as promised, twice that under other load. */
export const CALM_LIMIT_MS = 360_000
/** For the last events of the victim. */
const LAST_LIMIT_MS = 10_000
const POLL_MS = 1_000
const SAY_EVERY_MS = 20_000

/** An event to the victim comes that often. */
const VICTIM_EVERY_MS = 800
/** What the machine itself may add to the 2 s in which the victim's events come: it may have other work. */
const VICTIM_MS = Number(process.env['POSTHORN_PLAY_VICTIM_MS'] ?? 2_000)
const LOOK_EVERY_MS = 2_000

/** Plays a plan on real processes, waits until all is at rest, and returns what became of it. */
export async function play(
  plan: Plan,
  { program, calmLimitMs = CALM_LIMIT_MS }: { program?: string; calmLimitMs?: number } = {},
): Promise<PlayRecord> {
  const world = await createPlayWorld(plan, program)
  const isOver = new AbortController()
  const stopWatching = watchMachine(world)
  const dice = createDice(plan.seed ^ 0x57ea)
  const followers = world.members.map((member) => followStream(world, member, dice.fork()))
  try {
    say('the processes run')
    const run = {
      seed: plan.seed,
      attemptTimeoutMs: ATTEMPT_TIMEOUT_MS,
      notifyAfterMs: NOTIFY_AFTER_MS,
      victimMs: VICTIM_MS,
      queuedMs: plan.firstAttempt === 'workflow' ? await measureQueue(world) : 0,
    }
    const victim = publishToVictim(world, run, isOver.signal)
    await playPlan(world, plan)
    say('the last fault is over')
    for (const follower of followers) follower.settle()
    const deadline = nowMs() + calmLimitMs
    await waitUntilAtRest(world, run, deadline)
    isOver.abort()
    await victim
    // The last events come to their ends too.
    const facts = await waitUntilAtRest(world, run, Math.max(deadline, nowMs() + LAST_LIMIT_MS))
    const endedAt = nowMs()
    await Promise.all(followers.map((follower) => follower.close()))
    const processes = await Promise.all(world.processes.map((played) => played.finish()))
    say('the processes have ended')
    return { ...recordOf(world, { ...run, endedAt }, facts), processes }
  } finally {
    stopWatching()
    isOver.abort()
    await Promise.all(followers.map((follower) => follower.close()))
    await Promise.all(world.processes.map((played) => played.finish()))
    await world.close()
  }
}

function recordOf(world: PlayWorld, run: PlayRun, facts: Facts | null): PlayRecord {
  return {
    ...run,
    webhooks: world.webhooks.map(
      ({ id, organisationId, name, signingSecret, subscribedEventKeys, isVictim, hangsAtEnd }) => ({
        id,
        organisationId,
        name,
        signingSecret,
        subscribedEventKeys,
        isVictim,
        hangsAtEnd,
      }),
    ),
    posts: world.endpoints.ledger,
    publications: world.publications,
    actions: world.actions,
    faults: world.faults,
    streams: world.streams,
    mails: world.mail.mails.flatMap(receivedMails),
    processes: [],
    facts,
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

/** Publishes to the victim all the time, and says at once when one of its events is late. */
async function publishToVictim(
  world: PlayWorld,
  run: Omit<PlayRun, 'endedAt'>,
  signal: AbortSignal,
): Promise<void> {
  const event = { organisation: VICTIM, eventKey: 'customer:created', isKeyed: false, repeats: 0 }
  const publishing = new Set<Promise<void>>()
  const said = new Set<string | null>()
  let nextLookAt = 0
  while (!signal.aborted) {
    const one = publish(world, event).finally(() => publishing.delete(one))
    publishing.add(one)
    if (nowMs() > nextLookAt) {
      nextLookAt = nowMs() + LOOK_EVERY_MS
      for (const { deliveryId, detail } of checkLateness(recordOf(world, { ...run, endedAt: nowMs() }, null)))
        if (!said.has(deliveryId)) {
          said.add(deliveryId)
          say(`late: ${detail}`)
        }
    }
    await delay(VICTIM_EVERY_MS, undefined, { signal }).catch(() => undefined)
  }
  await Promise.all(publishing)
}

/** Does nothing but wait, until nothing is left that is to come to its end, or time is up. Returns the rows. */
async function waitUntilAtRest(
  world: PlayWorld,
  run: Omit<PlayRun, 'endedAt'>,
  deadline: number,
): Promise<Facts> {
  const begunAt = nowMs()
  let nextSayAt = 0
  const erased = world.actions
    .filter(({ kind }) => kind === 'erase')
    .map(({ organisationId }) => organisationId)
  for (;;) {
    const facts = await readFacts(world.database, erased)
    const left = unfinished(recordOf(world, { ...run, endedAt: nowMs() }, facts))
    const waitedMs = nowMs() - begunAt
    if (left.length === 0 || nowMs() > deadline) {
      say(
        `${left.length === 0 ? 'all is at rest' : `time is up: ${left[0]!.detail}`} after ${Math.round(waitedMs)} ms`,
      )
      return facts
    }
    if (nowMs() > nextSayAt) {
      nextSayAt = nowMs() + SAY_EVERY_MS
      say(`${left.length} are not at rest, such as: ${left[0]!.rule}, ${left[0]!.detail}`)
    }
    await delay(POLL_MS)
  }
}

function receivedMails(mail: PlayWorld['mail']['mails'][number]): ReceivedMail[] {
  const id = /^<inc-[^.]+\.\d\.([^.@]+)@/.exec(mail.parsed.messageId ?? '')?.[1] ?? 'none'
  return mail.envelope.to.map((recipient) => ({ id, recipient }))
}
