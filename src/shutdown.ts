import { setMaxListeners } from 'node:events'

/**
 * How long after the grace everything has to be over: what was cut off is recorded, rows are given back, connections are
 * closed. A second less than the five that are promised, for the end itself.
 */
export const STOP_MARGIN_MS = 4_000

/** What is not begun any more because this process is about to end: another process does it. */
export class StoppingError extends Error {
  override readonly name = 'StoppingError'
}

/** The end of this process, as its parts see it. */
export type Shutdown = {
  /** Aborts, with a StoppingError, when the process gets a stop signal: no POST begins any more. */
  stopping: AbortSignal
  /** Aborts when the grace that follows is over: what is still under way is cut off. */
  cutOff: AbortSignal
  /** Begins it. Calling it again changes nothing: there is one deadline for all parts. */
  begin(): void
}

export function createShutdown(graceMs: number): Shutdown {
  const stopping = new AbortController()
  const cutOff = new AbortController()
  // Every attempt under way listens; Node warns from the eleventh on.
  setMaxListeners(0, stopping.signal, cutOff.signal)
  return {
    stopping: stopping.signal,
    cutOff: cutOff.signal,
    begin() {
      if (stopping.signal.aborted) return
      stopping.abort(new StoppingError('This process is stopping.'))
      setTimeout(() => cutOff.abort(new Error('The grace of this process is over.')), graceMs)
    },
  }
}
