import type { FailureCode } from '../domain/attempt-outcome.ts'

/**
 * Why nothing, or nothing usable, came back from an endpoint, found by our own checks and timers.
 * `message` is shown to the customer: it names no address, so it cannot be used to map an internal network.
 */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  readonly code: FailureCode

  constructor(code: FailureCode, message: string) {
    super(message)
    this.code = code
  }
}

/** The endpoint is somewhere Posthorn does not send to. */
export function blockedTarget(): OutboundError {
  return new OutboundError('blocked_target', "The endpoint's host is not on the public internet.")
}

/** `15 seconds`, `1 second`, `0.5 seconds`. */
export function formatSeconds(durationMs: number): string {
  const seconds = durationMs / 1000
  return seconds === 1 ? '1 second' : `${seconds} seconds`
}
