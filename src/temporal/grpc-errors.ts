import { isGrpcServiceError } from '@temporalio/client'

/** Thrown when Temporal could not be reached; the call itself is valid. */
export class TemporalUnavailableError extends Error {
  override readonly name = 'TemporalUnavailableError'
}

/** The status codes of gRPC that Posthorn distinguishes (github.com/grpc/grpc, doc/statuscodes.md). */
const CODES = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
}

/** True when a call to Temporal ended with one of these codes; the client may have wrapped its error. */
export function hasGrpcCode(error: unknown, ...codes: (keyof typeof CODES)[]): boolean {
  if (isGrpcServiceError(error)) return codes.some((code) => CODES[code] === (error.code as number))
  return error instanceof Error && error.cause !== undefined && hasGrpcCode(error.cause, ...codes)
}

/** True when Temporal is unavailable, and the same call may well succeed later. */
export function isTemporalUnavailable(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof TemporalUnavailableError) return true
  return hasGrpcCode(error, 'CANCELLED', 'DEADLINE_EXCEEDED', 'UNAVAILABLE')
}

/** True when the API key of this process does not permit the call, or Temporal does not implement it. */
export function isNotPermitted(error: unknown): boolean {
  return hasGrpcCode(error, 'PERMISSION_DENIED', 'UNIMPLEMENTED')
}

/** True when Temporal does not accept the identity of this process, or does not permit it the call. */
export function isAccessRefused(error: unknown): boolean {
  return hasGrpcCode(error, 'PERMISSION_DENIED', 'UNAUTHENTICATED')
}
