import type { RetryMode } from '../../../src/domain/delivery-filter.ts'
import { createDice, type Dice } from './dice.ts'
import type { FaultKind } from './record.ts'

/**
 * How an endpoint answers. `mixed`: confirms two POSTs of three; `hangs`: answers nothing for longer than allowed;
 * `resets`: closes the connection without an answer; `refuses`: has no port that listens.
 */
export type Behaviour = 'confirms' | 'fails' | 'slow' | 'mixed' | 'hangs' | 'resets' | 'refuses'

export type EndpointPlan = {
  name: string
  /** Which of `ORGANISATIONS` its webhook is of. */
  organisation: number
  subscribedEventKeys: string[]
  /** One after the other; the last one lasts to the end. */
  phases: { forMs: number; behaviour: Behaviour }[]
}

/** What is planned of a webhook. `which` is any number: it picks one of what there is at that time. */
export type PlannedAction =
  | {
      kind: 'publish'
      organisation: number
      count: number
      eventKey: string
      repeats: number
      isKeyed: boolean
    }
  | { kind: 'switch' | 'narrow'; which: number; offMs: number }
  | { kind: 'move' | 'delete' | 'create'; which: number }
  | { kind: 'discard_failed' | 'replay' | 'test'; which: number }
  | { kind: 'retry' | 'discard' | 'exhaust'; which: number }
  | { kind: 'signal' | 'cancel' | 'terminate_workflow'; which: number }
  | { kind: 'retry_all'; mode: RetryMode; which: number | null; isFiltered: boolean }
  | { kind: 'purge' | 'erase' }

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
  /** For an SQL error: which writes fail. */
  writes: 'record' | 'claim' | 'lease' | 'sweep'
  /** For a clock: how far from the true time. */
  offsetSeconds: number
}

export type Plan = {
  seed: number
  durationMs: number
  processes: readonly { command: 'api' | 'worker'; webhookConcurrency: number }[]
  firstAttempt: 'workflow' | 'overflow' | 'direct'
  endpoints: EndpointPlan[]
  actions: { atMs: number; action: PlannedAction }[]
  /** Faults of one track come one after the other: of servers, of processes, and of others than the victim. */
  tracks: PlannedFault[][]
}

/** Short, so that leases and hanging POSTs end within a play of a minute. */
export const ATTEMPT_TIMEOUT_MS = 5_000
export const NOTIFY_AFTER_MS = 8_000
export const SHUTDOWN_GRACE_MS = 8_000

/** Each with its webhooks; the last one is the victim's. */
export const ORGANISATIONS = ['crowd', 'small', 'erased', 'victim'] as const
const CROWD = 0
const ERASED = 2
export const VICTIM = 3
const WEBHOOKS = [100, 6, 6, 1] as const

/** Every webhook of the crowd subscribes to this one. */
export const FAN_OUT_KEY = 'customer:updated'
const KEYS = ['customer:created', 'comment:created', 'comment:deleted', 'comment:updated'] as const

/** The part of the crowd that subscribes to another key too. */
const BUSY_SHARE = 0.15

const PROCESSES: Plan['processes'] = [
  { command: 'api', webhookConcurrency: 50 },
  { command: 'api', webhookConcurrency: 2 },
  { command: 'worker', webhookConcurrency: 1 },
  { command: 'worker', webhookConcurrency: 2 },
  { command: 'worker', webhookConcurrency: 50 },
]

const CLOCK_OFFSETS_SECONDS = [-3_600, -3, 3, 3_600]
/** Less than a lease exceeds the deadline of its POST. */
const DATABASE_CLOCK_OFFSETS_SECONDS = [-3, -1, 1, 3]
const SQLSTATES = ['53100', '53200', '57014', '55P03', '58030', '28000', '40001', 'XX000']

/** Kinds of faults by track, with the least and the longest time before one of them. */
const TRACKS: readonly { kinds: readonly FaultKind[]; afterMs: readonly [number, number] }[] = [
  {
    kinds: [
      'database_crash',
      'disk_full',
      'connections_exhausted',
      'sql_error',
      'temporal_restart',
      'temporal_wipe',
      'rolling_restart',
    ],
    afterMs: [10_000, 25_000],
  },
  {
    kinds: [
      'kill',
      'terminate',
      'pause',
      'pauses',
      'database_silence',
      'database_cut',
      'temporal_silence',
      'temporal_cut',
    ],
    afterMs: [2_000, 12_000],
  },
  { kinds: ['locked_webhooks', 'clock_step', 'database_clock_step'], afterMs: [3_000, 12_000] },
]

/** Those of a play that is not asked for others: after a step of PostgreSQL's clock the checks allow for as much. */
export const FAULT_KINDS: readonly FaultKind[] = TRACKS.flatMap(({ kinds }) => kinds).filter(
  (kind) => kind !== 'database_clock_step',
)

/** Draws everything that will be done, from the seed alone; `crowd`: webhooks of the first organisation. */
export function planPlay(
  seed: number,
  durationMs: number,
  faultKinds: readonly FaultKind[],
  crowd: number = WEBHOOKS[CROWD],
): Plan {
  const dice = createDice(seed)
  return {
    seed,
    durationMs,
    processes: PROCESSES,
    firstAttempt: dice.pick(['workflow', 'overflow', 'direct'] as const),
    endpoints: planEndpoints(dice.fork(), durationMs, crowd),
    actions: planActions(dice.fork(), durationMs),
    tracks: TRACKS.map(({ kinds, afterMs }) =>
      planTrack(dice.fork(), {
        durationMs,
        afterMs,
        kinds: kinds.filter((kind) => faultKinds.includes(kind)),
      }),
    ),
  }
}

function planEndpoints(dice: Dice, durationMs: number, crowd: number): EndpointPlan[] {
  return WEBHOOKS.flatMap((count, organisation) =>
    Array.from({ length: organisation === CROWD ? crowd : count }, () => {
      if (organisation === VICTIM)
        return {
          organisation,
          subscribedEventKeys: ['*'],
          name: 'victim',
          phases: [{ forMs: durationMs, behaviour: 'confirms' as const }],
        }
      const keys = dice.chance(BUSY_SHARE) ? [FAN_OUT_KEY, dice.pick(KEYS)] : [FAN_OUT_KEY]
      const subscribedEventKeys = organisation === CROWD ? keys : ['*']
      return { organisation, subscribedEventKeys, ...planBehaviour(dice, durationMs) }
    }),
  )
}

function planBehaviour(dice: Dice, durationMs: number): Pick<EndpointPlan, 'name' | 'phases'> {
  const [good, bad] = dice.weighted([
    [60, ['confirms', 'confirms']],
    [10, ['confirms', 'fails']],
    [8, ['slow', 'mixed']],
    [5, ['confirms', 'hangs']],
    [5, ['confirms', 'resets']],
    [3, ['hangs', 'hangs']],
    [4, ['fails', 'fails']],
    [2, ['refuses', 'refuses']],
    [3, ['slow', 'slow']],
  ] as const)
  if (good === bad) return { name: `always ${good}`, phases: [{ forMs: durationMs, behaviour: good }] }
  const phases: EndpointPlan['phases'] = []
  for (let atMs = 0; atMs < durationMs; atMs = phases.reduce((sum, { forMs }) => sum + forMs, 0))
    phases.push(
      { forMs: dice.int(4_000, 12_000), behaviour: good },
      { forMs: dice.int(4_000, 15_000), behaviour: bad },
    )
  return { name: `${good}, ${bad} in phases`, phases }
}

function planActions(dice: Dice, durationMs: number): Plan['actions'] {
  const actions: Plan['actions'] = [
    { atMs: dice.int(durationMs / 3, (durationMs * 2) / 3), action: { kind: 'erase' } },
  ]
  for (let atMs = dice.int(0, 500); atMs < durationMs; atMs += dice.int(200, 1_200))
    actions.push({ atMs, action: planAction(dice) })
  return actions.sort((one, other) => one.atMs - other.atMs)
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
    [3, 'exhaust'],
    [4, 'switch'],
    [4, 'narrow'],
    [4, 'move'],
    [1, 'delete'],
    [1, 'create'],
    [2, 'replay'],
    [3, 'test'],
    [8, 'signal'],
    [1, 'cancel'],
    [1, 'terminate_workflow'],
    [1, 'purge'],
  ] as const)
  switch (kind) {
    case 'publish':
      return planPublish(dice)
    case 'switch':
    case 'narrow':
      return { kind, which, offMs: dice.int(500, 12_000) }
    case 'retry_all':
      return {
        kind,
        mode: dice.pick(MODES_OF_ALL),
        which: dice.chance(0.7) ? which : null,
        isFiltered: dice.chance(0.5),
      }
    case 'purge':
      return { kind }
    default:
      return { kind, which }
  }
}

function planPublish(dice: Dice): PlannedAction {
  const isKeyed = dice.chance(0.3)
  const organisation = dice.weighted([
    [5, CROWD],
    [3, 1],
    [1, ERASED],
  ])
  const isFanOut = organisation === CROWD && dice.chance(0.1)
  return {
    kind: 'publish',
    organisation,
    count: !isFanOut && dice.chance(0.1) ? dice.int(4, 8) : 1,
    eventKey: isFanOut ? FAN_OUT_KEY : dice.pick(KEYS),
    isKeyed,
    repeats: isKeyed ? dice.int(0, 2) : 0,
  }
}

function planTrack(
  dice: Dice,
  of: { durationMs: number; kinds: readonly FaultKind[]; afterMs: readonly [number, number] },
): PlannedFault[] {
  const faults: PlannedFault[] = []
  if (of.kinds.length === 0) return faults
  let atMs = 0
  for (;;) {
    const kind = dice.pick(of.kinds)
    const isOfOne = dice.chance(0.8) || !/^(database|temporal|clock)/.test(kind)
    const fault: PlannedFault = {
      kind,
      afterMs: dice.int(...of.afterMs),
      forMs: dice.int(...durationOf(kind)),
      process: isOfOne ? dice.int(0, PROCESSES.length - 1) : null,
      silence: dice.pick(['open', 'all'] as const),
      sqlstate: dice.pick(SQLSTATES),
      writes: dice.pick(['record', 'claim', 'lease', 'sweep'] as const),
      offsetSeconds: dice.pick(
        kind === 'database_clock_step' ? DATABASE_CLOCK_OFFSETS_SECONDS : CLOCK_OFFSETS_SECONDS,
      ),
    }
    atMs += fault.afterMs + fault.forMs
    if (atMs > of.durationMs) return faults
    faults.push(fault)
  }
}

/** For how long a fault of this kind lasts, in ms; for a kill and a restart, how long it is down. */
function durationOf(kind: FaultKind): [min: number, max: number] {
  switch (kind) {
    case 'kill':
    case 'terminate':
      return [200, 4_000]
    case 'pause':
      return [5_000, 15_000]
    case 'pauses':
    case 'database_silence':
    case 'temporal_silence':
    case 'clock_step':
    case 'database_clock_step':
      return [3_000, 15_000]
    case 'locked_webhooks':
      return [2_000, 8_000]
    case 'sql_error':
    case 'database_crash':
    case 'disk_full':
    case 'connections_exhausted':
    case 'temporal_restart':
      return [500, 6_000]
    case 'database_cut':
    case 'temporal_cut':
    case 'temporal_wipe':
    case 'rolling_restart':
    case 'busy_machine':
      return [0, 0]
  }
}
