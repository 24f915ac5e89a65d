import {
  NamespaceNotFoundError,
  WorkflowNotFoundError,
  type WorkflowClientInterceptor,
} from '@temporalio/client'
import { hasGrpcCode, TemporalUnavailableError } from './grpc-errors.ts'

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
  // The error for an unknown search attribute.
  return hasGrpcCode(error, 'INVALID_ARGUMENT')
}
