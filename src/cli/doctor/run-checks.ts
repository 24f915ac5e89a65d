import { withTimeLimit } from '../../temporal/calls.ts'
import { describeError } from '../../process/visible-text.ts'
import type { Check } from './check.ts'
import { AREAS, problem, skipped, type Finding } from './finding.ts'

/** The time for one check, in which it is not waiting for another. */
export const CHECK_TIMEOUT_MS = 5_000

/**
 * Runs all checks at the same time, each as soon as those that it needs have ended, and returns what they found, by
 * area and in the order of `checks`. Never rejects: a check that throws or takes longer than `timeoutMs` is a problem
 * of its own, and those that need it are skipped.
 */
export async function runChecks(
  checks: readonly Check[],
  { timeoutMs = CHECK_TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<Finding[]> {
  const results = new Map<string, Promise<Finding[]>>()
  for (const check of checks) results.set(check.name, runAfterNeeded(check, results, timeoutMs))
  const found = (await Promise.all(results.values())).flat()
  return AREAS.flatMap((area) => found.filter(({ code }) => code.startsWith(`${area}.`)))
}

async function runAfterNeeded(
  check: Check,
  results: ReadonlyMap<string, Promise<Finding[]>>,
  timeoutMs: number,
): Promise<Finding[]> {
  const { name, needs, badVariables, failure } = check
  const [badVariable] = badVariables
  if (badVariable !== undefined) return [skipped(name, `${badVariable} is not valid`)]
  for (const needed of needs) {
    const findings = (await results.get(needed)) ?? []
    if (findings.some(({ level }) => level === 'error' || level === 'skipped'))
      return [skipped(name, `it needs ${needed}`)]
  }
  const limits = { what: 'the check', timeoutMs, signal: new AbortController().signal }
  try {
    return await withTimeLimit(check.run(), limits, () => Promise.resolve())
  } catch (error) {
    return [problem(failure, describeError(error))]
  }
}
