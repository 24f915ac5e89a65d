import { isGrpcServiceError } from '@temporalio/client'

/** The engine could not be reached: nothing is wrong with what it was asked. */
export class EngineAwayError extends Error {
  override readonly name = 'EngineAwayError'
}

/** CANCELLED, DEADLINE_EXCEEDED and UNAVAILABLE of gRPC. */
const AWAY: readonly unknown[] = [1, 4, 14]

/** True when the engine is away, and the same call may well succeed later. */
export function isEngineAway(error: unknown): boolean {
  if (error instanceof EngineAwayError) return true
  if (isGrpcServiceError(error)) return AWAY.includes(error.code)
  return error instanceof Error && error.cause !== undefined && isEngineAway(error.cause)
}
