import { settlesWithin } from '../timers.ts'

type Stop = () => Promise<unknown>

/** The time for each part that is stopped after the time limit is used up. */
const LAST_CHANCE_MS = 100

/** Things that were started and are to be stopped in the opposite order. */
export type Stack = {
  push(name: string, stop: Stop): void
  /** Several that are stopped at the same time. */
  pushTogether(parts: Readonly<Record<string, Stop>>): void
  /**
   * Stops all; one that fails does not keep the others from being stopped. With `limitMs`, what has not ended by then
   * is waited for no longer. Returns what went wrong.
   */
  stop(limitMs?: number): Promise<string[]>
}

export function createStack(): Stack {
  const entries: [name: string, stop: Stop][][] = []
  return {
    push(name, stop) {
      entries.push([[name, stop]])
    },
    pushTogether(parts) {
      entries.push(Object.entries(parts))
    },
    async stop(limitMs = Infinity) {
      const untilMs = performance.now() + limitMs
      const problems: string[] = []
      for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
        const leftMs = Math.max(LAST_CHANCE_MS, untilMs - performance.now())
        await Promise.all(
          entry.map(async ([name, stop]) => {
            const problem = await problemOf(stop, leftMs)
            if (problem !== null) problems.push(`${name}: ${problem}`)
          }),
        )
      }
      return problems
    },
  }
}

async function problemOf(stop: Stop, leftMs: number): Promise<string | null> {
  try {
    const stopped = stop()
    if (leftMs !== Infinity && !(await settlesWithin(stopped, leftMs))) return 'it took too long'
    await stopped
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
