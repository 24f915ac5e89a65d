/** What reaches the workflow. A `retry` is on the row before, a `bare retry` (from the Temporal UI) is not. */
export const SIGNALS = ['retry', 'bare retry', 'stop', 'stop without a reason'] as const
export type Signal = (typeof SIGNALS)[number]

/** What happens in a wait. After the first five its timer fires. */
export const WAIT_EVENTS = [
  'timer',
  'clock of the database set back',
  'stop without a signal',
  'success of another run',
  'failure of another run',
  'cancel',
  ...SIGNALS,
] as const
export type WaitEvent = (typeof WAIT_EVENTS)[number]

/** How a requested attempt ends. `not claimed`: the row refuses the claim, or is final. */
export const ATTEMPT_EVENTS = [
  'deferred',
  'sent to the slow queue',
  'confirmed',
  'refused',
  'timed out',
  'not claimed',
] as const
export type AttemptEvent = (typeof ATTEMPT_EVENTS)[number]

type Attempt = { event: AttemptEvent; meanwhile: Signal | null }

/** The events to choose from. */
export type Alphabet = {
  wait: (isCancelled: boolean) => readonly WaitEvent[]
  attempt: (isClaimed: boolean, isSlow: boolean) => readonly Attempt[]
  /** While a retry is recorded on the row. */
  recording: readonly (Signal | null)[]
}

export function createAlphabet(events: {
  wait: readonly WaitEvent[]
  attempt: readonly AttemptEvent[]
  /** That come during an attempt. */
  signals: readonly Signal[]
}): Alphabet {
  const meanwhile = [null, ...events.signals]
  const attempts = (isClaimed: boolean, isSlow: boolean): readonly Attempt[] =>
    events.attempt
      .filter((event) => isPossible(event, isClaimed, isSlow))
      .flatMap((event) => meanwhile.map((signal) => ({ event, meanwhile: signal })))
  const claimed = { slow: attempts(true, true), other: attempts(true, false) }
  const refused = { slow: attempts(false, true), other: attempts(false, false) }
  const withoutCancel = events.wait.filter((event) => event !== 'cancel')
  return {
    wait: (isCancelled) => (isCancelled ? withoutCancel : events.wait),
    attempt: (isClaimed, isSlow) => (isClaimed ? claimed : refused)[isSlow ? 'slow' : 'other'],
    recording: meanwhile,
  }
}

function isPossible(event: AttemptEvent, isClaimed: boolean, isSlow: boolean): boolean {
  if (event === 'deferred') return true
  if (event === 'sent to the slow queue') return !isSlow
  return isClaimed === (event !== 'not claimed')
}
