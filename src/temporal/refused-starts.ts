import {
  isGrpcServiceError,
  NamespaceNotFoundError,
  WorkflowNotFoundError,
  type WorkflowClientInterceptor,
} from '@temporalio/client'
import { TemporalUnavailableError } from './unavailable.ts'

/** INVALID_ARGUMENT of gRPC: the error for an unknown search attribute. */
const INVALID_ARGUMENT: unknown = 3

/**
 * Checks the namespace at once when Temporal refuses a start because it does not know a name in it. Where `isIncomplete`
 * finds that something is missing, the start throws TemporalUnavailableError: it is accepted a little later.
 */
export function checkRefusedStarts(isIncomplete: () => Promise<boolean>): WorkflowClientInterceptor {
  async function checked<T>(start: Promise<T>): Promise<T> {
    try {
      return await start
    } catch (error) {
      if (!isUnknownName(error) || !(await isIncomplete())) throw error
      throw new TemporalUnavailableError('the namespace is incomplete', { cause: error })
    }
  }
  return {
    startWithDetails: (input, next) => checked(next(input)),
    signalWithStart: (input, next) => checked(next(input)),
  }
}

function isUnknownName(error: unknown): boolean {
  if (error instanceof NamespaceNotFoundError || error instanceof WorkflowNotFoundError) return true
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return isGrpcServiceError(cause) && cause.code === INVALID_ARGUMENT
}
