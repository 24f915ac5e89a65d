import type { createDispatcher } from '../../../../../src/deliveries/dispatch/dispatcher.ts'
import { importMutated } from '../../../../helpers/mutate.ts'

/** A defect in the dispatcher: texts of its files, each with its replacement. The search begins at `firstSeed`, which showed it. */
export type Mutant = {
  name: string
  firstSeed?: number
  changes: readonly { file: string; from: string; to: string }[]
}

const DISPATCH = new URL('../../../../../src/deliveries/dispatch/', import.meta.url)

/** Returns the dispatcher with a defect. */
export async function createMutant({ changes }: Mutant): Promise<typeof createDispatcher> {
  const module = await importMutated(DISPATCH, 'dispatcher.ts', changes)
  return (module as { createDispatcher: typeof createDispatcher }).createDispatcher
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'waits for a wake-up that may be lost: a key without room sleeps, and rows are not polled',
    changes: [
      {
        file: 'inline-attempts.ts',
        from: '!mayBegin(delivery)))\n      queue.wake()\n',
        to: '!mayBegin(delivery)))\n',
      },
      { file: 'workflow-starts.ts', from: '      queue.wake()\n', to: '' },
      { file: 'puller.ts', from: 'const INTERVAL_MS = 100', to: 'const INTERVAL_MS = 1_000_000' },
    ],
  },
  {
    name: 'keeps in memory what does not begin in time',
    firstSeed: 10,
    changes: [
      {
        file: 'inline-attempts.ts',
        from: 'releaseAll(queue.drain((delivery) => !mayBegin(delivery)))',
        to: '',
      },
    ],
  },
  {
    name: 'begins what waited for too long',
    // It shows in one of 200 scenarios.
    firstSeed: 418,
    changes: [
      {
        file: 'inline-attempts.ts',
        from: 'isFresh(claim, timers.nowMs())',
        to: 'isFresh(claim, timers.nowMs() - 9 * MAX_CLAIM_AGE_MS)',
      },
    ],
  },
  {
    name: 'begins by a webhook that was changed since',
    firstSeed: 3,
    changes: [
      {
        file: 'inline-attempts.ts',
        from: '!webhookChanges.hasChangedSince(webhookId, claim.claimedAtMs)',
        to: 'webhookChanges !== undefined',
      },
    ],
  },
  {
    name: 'never settles what is reserved for claims',
    changes: [{ file: 'dispatcher.ts', from: '      settle()\n', to: '      void settle\n' }],
  },
  {
    name: 'starts workflows from memory after their rows are left to all',
    firstSeed: 82,
    changes: [
      {
        file: 'workflow-starts.ts',
        from: 'timers.nowMs() >= heldUntilMs\n',
        to: 'timers.nowMs() >= heldUntilMs + 60_000\n',
      },
    ],
  },
  {
    name: 'stops without giving back what it has claimed',
    firstSeed: 1,
    changes: [
      { file: 'inline-attempts.ts', from: '      releaseAll(queue.drain())\n', to: '      queue.drain()\n' },
    ],
  },
  {
    name: 'does not release the run of a claim that comes too late',
    changes: [
      {
        file: 'inline-attempts.ts',
        from: 'if (isStopping || !mayBegin(delivery)) {\n        dependencies.onReleased(delivery)\n',
        to: 'if (isStopping || !mayBegin(delivery)) {\n',
      },
    ],
  },
]
