import type { RetryMode } from '../../../src/domain/delivery-filter.ts'
import { createDice, type Dice } from './dice.ts'
import type { FaultKind } from './record.ts'

/** How an endpoint answers. `mixed`: confirms two POSTs of three; `hangs`: answers nothing for longer than allowed. */
export type Behaviour = 'confirms' | 'fails' | 'slow' | 'mixed' | 'hangs'

export type EndpointPlan = {
  name: string
  subscribedEventKeys: string[]
  /** One after the other; the last one lasts to the end. */
  phases: { forMs: number; behaviour: Behaviour }[]
}

/** What a producer or a member does. `which` is any number: it picks one of what there is at that time. */
export type PlannedAction =
  | { kind: 'publish'; count: number; eventKey: string; repeats: number; isKeyed: boolean }
  | { kind: 'switch'; which: number; offMs: number }
  | { kind: 'retry' | 'discard' | 'discard_failed' | 'exhaust'; which: number }
  | { kind: 'retry_all'; mode: RetryMode; which: number | null }

export type PlannedFault = {
  kind: FaultKind
  /** How long all is well on this track before it. */
  afterMs: number
  forMs: number
  /** Which process it hits; null for all. */
  process: number | null
  /** For silence: the connections of that instant, or new ones too. */
  silence: 'open' | 'all'
  sqlstate: string
  /** For a clock: how far from the true time. */
  offsetSeconds: number
}

export type Plan = {
  seed: number
  durationMs: number
  commands: readonly ('serve' | 'api' | 'worker')[]
  firstAttempt: 'workflow' | 'overflow' | 'direct'
  /** At the end, what switch-offs stopped is retried too. */
  resumesStopped: boolean
  endpoints: EndpointPlan[]
  actions: { atMs: number; action: PlannedAction }[]
  /** Faults of one track come one after the other, so that no more than two are in progress. */
  tracks: PlannedFault[][]
}

export const EVENT_KEYS = ['customer:created', 'customer:updated', 'comment:created'] as const

const FAULT_TRACKS = 2
const CLOCK_OFFSETS_SECONDS = [-3_600, -3, 3, 3_600]
const SQLSTATES = ['53100', '53200', '57014', '55P03', '58030', '28000', '40001', 'XX000']

/** Draws everything that will be done, from the seed alone. */
export function planPlay(seed: number, durationMs: number, faultKinds: readonly FaultKind[]): Plan {
  const dice = createDice(seed)
  const commands = dice.pick([['serve', 'serve'] as const, ['api', 'worker', 'worker'] as const])
  return {
    seed,
    durationMs,
    commands,
    firstAttempt: dice.pick(['workflow', 'overflow', 'direct'] as const),
    resumesStopped: dice.chance(0.5),
    endpoints: planEndpoints(dice.fork(), durationMs),
    actions: planActions(dice.fork(), durationMs),
    tracks: Array.from({ length: FAULT_TRACKS }, () =>
      planTrack(dice.fork(), durationMs, commands.length, faultKinds),
    ),
  }
}

function planEndpoints(dice: Dice, durationMs: number): EndpointPlan[] {
  const always = (behaviour: Behaviour) => [{ forMs: durationMs, behaviour }]
  const inTurn = (good: Behaviour, bad: Behaviour) => {
    const phases: EndpointPlan['phases'] = []
    for (let atMs = 0; atMs < durationMs; atMs = phases.reduce((sum, { forMs }) => sum + forMs, 0))
      phases.push(
        { forMs: dice.int(4_000, 12_000), behaviour: good },
        { forMs: dice.int(4_000, 15_000), behaviour: bad },
      )
    return phases
  }
  return [
    { name: 'healthy', subscribedEventKeys: ['*'], phases: always('confirms') },
    { name: 'failing in phases', subscribedEventKeys: ['*'], phases: inTurn('confirms', 'fails') },
    { name: 'slow', subscribedEventKeys: ['*'], phases: inTurn('slow', 'mixed') },
    {
      name: 'hanging in phases',
      subscribedEventKeys: ['customer:created'],
      phases: inTurn('confirms', 'hangs'),
    },
    { name: 'dead', subscribedEventKeys: ['customer:updated'], phases: always('fails') },
  ]
}

function planActions(dice: Dice, durationMs: number): Plan['actions'] {
  const actions: Plan['actions'] = []
  for (let atMs = dice.int(0, 500); atMs < durationMs; atMs += dice.int(200, 1_200))
    actions.push({ atMs, action: planAction(dice) })
  return actions
}

/** The modes that need no selection. */
const MODES_OF_ALL: readonly RetryMode[] = ['failed', 'force', 'stopped']

function planAction(dice: Dice): PlannedAction {
  const which = dice.int(0, 1_000_000)
  const kind = dice.weighted([
    [50, 'publish'],
    [8, 'retry'],
    [3, 'retry_all'],
    [4, 'discard'],
    [2, 'discard_failed'],
    [4, 'exhaust'],
    [4, 'switch'],
  ] as const)
  switch (kind) {
    case 'publish': {
      const isKeyed = dice.chance(0.3)
      return {
        kind,
        count: dice.chance(0.15) ? dice.int(4, 12) : 1,
        eventKey: dice.pick(EVENT_KEYS),
        isKeyed,
        repeats: isKeyed ? dice.int(0, 2) : 0,
      }
    }
    case 'switch':
      return { kind, which, offMs: dice.int(500, 6_000) }
    case 'retry_all':
      return { kind, mode: dice.pick(MODES_OF_ALL), which: dice.chance(0.5) ? which : null }
    case 'retry':
    case 'discard':
    case 'discard_failed':
    case 'exhaust':
      return { kind, which }
  }
}

function planTrack(
  dice: Dice,
  durationMs: number,
  processes: number,
  kinds: readonly FaultKind[],
): PlannedFault[] {
  const faults: PlannedFault[] = []
  if (kinds.length === 0) return faults
  let atMs = 0
  for (;;) {
    const kind = dice.pick(kinds)
    const fault: PlannedFault = {
      kind,
      afterMs: dice.int(1_000, 6_000),
      forMs: dice.int(...durationOf(kind)),
      process: dice.chance(0.7) || kind === 'kill' || kind === 'pause' ? dice.int(0, processes - 1) : null,
      silence: dice.pick(['open', 'all'] as const),
      sqlstate: dice.pick(SQLSTATES),
      offsetSeconds: dice.pick(CLOCK_OFFSETS_SECONDS),
    }
    atMs += fault.afterMs + fault.forMs
    if (atMs > durationMs) return faults
    faults.push(fault)
  }
}

/** For how long a fault of this kind lasts, in ms; for a kill and a restart, how long it is down. */
function durationOf(kind: FaultKind): [min: number, max: number] {
  switch (kind) {
    case 'kill':
      return [200, 4_000]
    case 'pause':
      return [5_000, 20_000]
    case 'database_silence':
    case 'temporal_silence':
      return [3_000, 20_000]
    case 'clock_step':
      return [3_000, 20_000]
    case 'recording_error':
      return [1_000, 6_000]
    case 'temporal_restart':
      return [500, 6_000]
    case 'database_cut':
    case 'temporal_cut':
    case 'temporal_wipe':
      return [0, 0]
  }
}
