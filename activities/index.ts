import type { AttemptDependencies } from '../src/delivery/attempt.ts'
import { createMakeAttempt } from './make-attempt.ts'

export type ActivityDependencies = AttemptDependencies

/** The activities of a worker, with their dependencies closed over. */
export function createActivities(dependencies: ActivityDependencies) {
  return { makeAttempt: createMakeAttempt(dependencies) }
}

export type Activities = ReturnType<typeof createActivities>
