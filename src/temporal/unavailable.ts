import { isGrpcServiceError } from '@temporalio/client'

/** Thrown when Temporal could not be reached; the call itself is valid. */
export class TemporalUnavailableError extends Error {
  override readonly name = 'TemporalUnavailableError'
}

/** CANCELLED, DEADLINE_EXCEEDED and UNAVAILABLE of gRPC. */
const UNAVAILABLE_CODES: readonly unknown[] = [1, 4, 14]

/** True when Temporal is unavailable, and the same call may well succeed later. */
export function isTemporalUnavailable(error: unknown): boolean {
  if (error instanceof TemporalUnavailableError) return true
  if (isGrpcServiceError(error)) return UNAVAILABLE_CODES.includes(error.code)
  return error instanceof Error && error.cause !== undefined && isTemporalUnavailable(error.cause)
}
