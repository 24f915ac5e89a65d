import { describeError } from './describe-error.ts'

/**
 * Runs `stop` once, at the first SIGINT or SIGTERM, and then ends the process.
 * A second signal ends it at once, for those who cannot wait.
 */
export function onStopSignal(stop: (signal: string) => Promise<void>): void {
  let stopping = false
  const handle = (signal: NodeJS.Signals): void => {
    if (stopping) process.exit(1)
    stopping = true
    stop(signal).then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${describeError(error)}\n`)
        process.exit(1)
      },
    )
  }
  process.on('SIGINT', handle)
  process.on('SIGTERM', handle)
}
