import {
  isGrpcServiceError,
  NamespaceNotFoundError,
  WorkflowNotFoundError,
  type WorkflowClientInterceptor,
} from '@temporalio/client'
import { EngineAwayError } from './engine-away.ts'

/** INVALID_ARGUMENT of gRPC: what Temporal says of a search attribute that it does not know. */
const INVALID_ARGUMENT: unknown = 3

/**
 * Has the namespace checked at once when Temporal does not know what a start names. Where `isLacking` finds that
 * something was missing, the start throws EngineAwayError, since the same start is accepted a little later.
 */
export function checkRefusedStarts(isLacking: () => Promise<boolean>): WorkflowClientInterceptor {
  async function checked<T>(start: Promise<T>): Promise<T> {
    try {
      return await start
    } catch (error) {
      if (!isUnknown(error) || !(await isLacking())) throw error
      throw new EngineAwayError('the namespace lacks what a start needs', { cause: error })
    }
  }
  return {
    startWithDetails: (input, next) => checked(next(input)),
    signalWithStart: (input, next) => checked(next(input)),
  }
}

function isUnknown(error: unknown): boolean {
  if (error instanceof NamespaceNotFoundError || error instanceof WorkflowNotFoundError) return true
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return isGrpcServiceError(cause) && cause.code === INVALID_ARGUMENT
}
