/** Lets the work of one webhook be done one piece after the other in this process. */
export type Turns = { take<T>(webhookId: string, work: () => Promise<T>): Promise<T> }

/**
 * For transactions that wait for one row of their webhook anyway: without turns, the many deliveries of one endpoint
 * that recovers would fill the pool with connections that stand in line, and everyone else would wait for one.
 */
export function createTurns(): Turns {
  const lastOf = new Map<string, Promise<unknown>>()
  return {
    take(webhookId, work) {
      const before = lastOf.get(webhookId) ?? Promise.resolve()
      const turn = before.then(work, work)
      lastOf.set(webhookId, turn)
      const forget = (): void => {
        if (lastOf.get(webhookId) === turn) lastOf.delete(webhookId)
      }
      turn.then(forget, forget)
      return turn
    },
  }
}
