import { importMutated } from '../mutate.ts'
import type { DeliveryLoop } from './model-run.ts'

/** A fault in the loop: each text, which is there once, becomes another. */
export type LoopMutant = { name: string; changes: readonly (readonly [from: string, to: string])[] }

const WORKFLOWS = new URL('../../../workflows/', import.meta.url)

/** Loads the loop of `deliverEvent` with a fault in it. */
export async function loadMutant({ changes }: LoopMutant): Promise<DeliveryLoop> {
  const file = 'delivery-loop.ts'
  const replaced = changes.map(([from, to]) => ({ file, from, to }))
  return (await importMutated(WORKFLOWS, file, replaced)) as DeliveryLoop
}

const WAKES = 'if (isWoken()) next = { ...next, dueAtMs: null, wakeAtMs: nowMs() }'
const WAITS = 'next = { ...following, dueAtMs: due.dueAtMs, wakeAtMs: nowMs() + due.dueInMs - leadMs }'

/** Faults that the explorer has to find. Release 0.1 had the first. */
export const LOOP_MUTANTS: readonly LoopMutant[] = [
  {
    name: 'a claim that is refused after a deferral leaves the deferral as the wait',
    changes: [
      [WAKES, 'const isAtOnce = isWoken()'],
      [
        'const { number, dueAtMs, queue } = next',
        'const { number, queue } = next\n const dueAtMs = isAtOnce ? null : next.dueAtMs',
      ],
      [WAITS, `if (isMade || next.wakeAtMs <= nowMs()) ${WAITS}`],
    ],
  },
  {
    name: 'a final outcome ends it although a signal came meanwhile',
    changes: [[`isWoken() && outcome.state !== 'completed'`, `isWoken() && outcome.state === 'stopped'`]],
  },
  {
    name: 'signals that come during an attempt are forgotten',
    changes: [
      [
        'await runtime.makeAttempt({ number, dueAtMs, queue })',
        'await runtime.makeAttempt({ number, dueAtMs, queue })\n wakeUps.rowChanged = wakeUps.retryRequested = false',
      ],
    ],
  },
  { name: 'one that was woken waits for its instant', changes: [[WAKES, '']] },
  {
    name: 'a retry that is signalled while another is recorded is not recorded',
    changes: [['while (wakeUps.retryRequested) {', 'if (wakeUps.retryRequested) {']],
  },
  {
    name: 'a deferred attempt is requested again at once',
    changes: [['nowMs() + outcome.delayMs', 'nowMs()']],
  },
  {
    name: 'it sleeps until the instant, and not until its lead',
    changes: [['due.dueInMs - leadMs', 'due.dueInMs']],
  },
  {
    name: 'it sleeps until the instant of the row by its own clock',
    changes: [['nowMs() + due.dueInMs - leadMs', '(due.dueAtMs ?? 0) - leadMs']],
  },
  { name: 'a long history goes on', changes: [['runtime.isHistoryLong() || ', '']] },
  {
    name: 'the successor of a cancelled run makes its attempt at once',
    changes: [
      ['next: { number, dueAtMs, wakeAtMs }, snapshot', 'next: { number, dueAtMs, wakeAtMs: 0 }, snapshot'],
    ],
  },
  { name: 'one that only follows ends although it was signalled', changes: [[' && !isWoken()', '']] },
]
