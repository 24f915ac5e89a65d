import fc from 'fast-check'
import type { SendOutcome } from '../../../src/incidents/notifications/mail-text.ts'
import type { Crew } from './incident-temporal.ts'

export type Answer = SendOutcome['state']

/** `which` is any number: it picks one of what there is to pick from. */
export type Operation =
  | { do: 'publish' | 'discard failed' | 'disable' | 'enable' | 'delete' | 'sweep' | 'forget' }
  | { do: 'test'; succeeds: boolean }
  | { do: 'attempt' | 'finish'; which: number; succeeds: boolean }
  | { do: 'begin' | 'lose' | 'exhaust' | 'retry' | 'discard' | 'purge' | 'signal again'; which: number }
  | { do: 'pass'; minutes: number }
  | { do: 'entitle'; member: number; isEntitled: boolean }
  | { do: 'turn'; crew: Crew; answers: Answer[] }

/** `away`: signals sent to Temporal meanwhile are lost. */
export type Turn = { away?: boolean; operation: Operation }

const which = fc.nat({ max: 7 })

const crew: fc.Arbitrary<Crew> = fc.record({
  workers: fc.constantFrom(1, 1, 1, 2),
  death: fc.option(
    fc.record({ atStep: fc.integer({ min: 1, max: 24 }), effect: fc.constantFrom('before', 'after') }),
    { freq: 2 },
  ),
})

const answers = fc.array(
  fc.constantFrom<Answer[]>('sent', 'sent', 'sent', 'refused', 'refused', 'failed', 'unknown'),
  { minLength: 1, maxLength: 5 },
)

/** How often each comes, against the others. */
const CHOICES: [number, fc.Arbitrary<Operation>][] = [
  [16, fc.constant({ do: 'publish' })],
  [24, fc.record({ do: fc.constant('attempt'), which, succeeds: fc.boolean() })],
  [6, fc.record({ do: fc.constant('test'), succeeds: fc.boolean() })],
  [8, fc.record({ do: fc.constant('begin'), which })],
  [6, fc.record({ do: fc.constant('finish'), which, succeeds: fc.boolean() })],
  [4, fc.record({ do: fc.constant('lose'), which })],
  [8, fc.record({ do: fc.constant('exhaust'), which })],
  [8, fc.record({ do: fc.constant('retry'), which })],
  [4, fc.record({ do: fc.constant('discard'), which })],
  [2, fc.constant({ do: 'discard failed' })],
  [6, fc.constant({ do: 'disable' })],
  [12, fc.constant({ do: 'enable' })],
  [1, fc.constant({ do: 'delete' })],
  [2, fc.record({ do: fc.constant('purge'), which })],
  [20, fc.record({ do: fc.constant('pass'), minutes: fc.constantFrom(1, 2, 3, 5, 20) })],
  [4, fc.record({ do: fc.constant('entitle'), member: fc.nat({ max: 1 }), isEntitled: fc.boolean() })],
  [32, fc.record({ do: fc.constant('turn'), crew, answers })],
  [8, fc.constant({ do: 'sweep' })],
  [4, fc.constant({ do: 'forget' })],
  [4, fc.record({ do: fc.constant('signal again'), which })],
]

/** What may happen, in any order. */
export const turns: fc.Arbitrary<Turn[]> = fc.array(
  fc.record({
    away: fc.integer({ min: 1, max: 5 }).map((number) => number === 5),
    operation: fc.oneof(...CHOICES.map(([weight, arbitrary]) => ({ weight, arbitrary }))),
  }),
  { minLength: 10, maxLength: 40, size: 'max' },
)
