import type { Answer } from './receiver.ts'

/** An endpoint whose answers wait until `release`. */
export type DeferredAnswers = {
  answer: Answer
  /** POSTs that wait for their answer, and the largest number of them so far. */
  pending(): number
  maxPending(): number
  /** Answers all waiting and all later POSTs with this status. */
  release(status?: number): void
}

export function createDeferredAnswers(): DeferredAnswers {
  const waiting: ((status: number) => void)[] = []
  let max = 0
  let released: number | null = null
  return {
    answer: () =>
      released ??
      new Promise<number>((resolve) => {
        waiting.push(resolve)
        max = Math.max(max, waiting.length)
      }),
    pending: () => waiting.length,
    maxPending: () => max,
    release(status = 200) {
      released = status
      for (const resolve of waiting.splice(0)) resolve(status)
    },
  }
}
