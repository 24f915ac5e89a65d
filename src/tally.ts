/** Amounts by key, and their sum. A key whose amount is zero takes no memory. */
export type Tally = {
  /** Adds an amount, which may be negative. */
  add(key: string, amount: number): void
  of(key: string): number
  total(): number
}

export function createTally(): Tally {
  const amounts = new Map<string, number>()
  let total = 0
  return {
    add(key, amount) {
      const sum = (amounts.get(key) ?? 0) + amount
      if (sum === 0) amounts.delete(key)
      else amounts.set(key, sum)
      total += amount
    },
    of: (key) => amounts.get(key) ?? 0,
    total: () => total,
  }
}
