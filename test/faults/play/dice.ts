import { seededRandom } from '../../helpers/seeded-random.ts'

/** Random numbers that repeat with their seed. */
export type Dice = {
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** Picks by weight: an entry of weight 4 comes four times as often as one of weight 1. */
  weighted<T>(entries: readonly (readonly [weight: number, value: T])[]): T
  /** Dice of their own, so that one part of a plan does not change with the length of another. */
  fork(): Dice
}

/** Creates dice from a 32-bit seed. */
export function createDice(seed: number): Dice {
  const next = seededRandom(seed)
  const int = (min: number, max: number): number => min + Math.floor(next() * (max - min + 1))
  return {
    int,
    chance: (probability) => next() < probability,
    pick: (from) => from[int(0, from.length - 1)]!,
    weighted(entries) {
      let left = next() * entries.reduce((sum, [weight]) => sum + weight, 0)
      for (const [weight, value] of entries) {
        left -= weight
        if (left < 0) return value
      }
      return entries.at(-1)![1]
    },
    fork: () => createDice(int(0, 2 ** 31)),
  }
}
