import type { Answer } from './receiver.ts'

/** An endpoint that answers when it is told to. */
export type GatedAnswers = {
  answer: Answer
  /** POSTs that wait for their answer, and the most that ever did. */
  held(): number
  mostHeld(): number
  /** Answers all that wait and all that come, with this status. */
  release(status?: number): void
}

export function createGatedAnswers(): GatedAnswers {
  const waiting: ((status: number) => void)[] = []
  let most = 0
  let open: number | null = null
  return {
    answer: () =>
      open ??
      new Promise<number>((resolve) => {
        waiting.push(resolve)
        most = Math.max(most, waiting.length)
      }),
    held: () => waiting.length,
    mostHeld: () => most,
    release(status = 200) {
      open = status
      for (const resolve of waiting.splice(0)) resolve(status)
    },
  }
}
