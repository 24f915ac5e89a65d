/** Amounts by key, and their sum. A key whose amount is zero takes no memory. */
export type Tally<Key> = {
  /** Adds an amount, which may be negative. */
  add(key: Key, amount: number): void
  of(key: Key): number
  keys(): Key[]
  total(): number
  /** Returns the key with the largest amount, of several the one that has had one for longest; none without amounts. */
  largest(): Key | undefined
}

export function createTally<Key = string>(): Tally<Key> {
  const amounts = new Map<Key, number>()
  let total = 0
  return {
    add(key, amount) {
      const sum = (amounts.get(key) ?? 0) + amount
      if (sum === 0) amounts.delete(key)
      else amounts.set(key, sum)
      total += amount
    },
    of: (key) => amounts.get(key) ?? 0,
    keys: () => [...amounts.keys()],
    total: () => total,
    largest() {
      const none: [Key | undefined, number] = [undefined, 0]
      const [key] = [...amounts].reduce((one, other) => (other[1] > one[1] ? other : one), none)
      return key
    },
  }
}
