/** Things that were started and are to be stopped in the opposite order. */
export type Stack = {
  push(name: string, stop: () => Promise<void>): void
  /** Stops all; one that fails does not keep the others from being stopped. Returns what went wrong. */
  stop(): Promise<string[]>
}

export function createStack(): Stack {
  const entries: { name: string; stop: () => Promise<void> }[] = []
  return {
    push(name, stop) {
      entries.push({ name, stop })
    },
    async stop() {
      const problems: string[] = []
      for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
        try {
          await entry.stop()
        } catch (error) {
          problems.push(`${entry.name}: ${error instanceof Error ? error.message : String(error)}`)
        }
      }
      return problems
    },
  }
}
