import { createContext, Script } from 'node:vm'

/** A payload has 256 KiB at most: an ordinary schema takes a few milliseconds for it. */
const TIME_LIMIT_MS = 100

const sandbox: { run: () => void } = { run: () => undefined }
const context = createContext(sandbox)
const script = new Script('run()')

/**
 * Returns the result of `work`, or null when it takes longer than {@link TIME_LIMIT_MS} or recurses without an end. Costs
 * about 50 µs.
 */
export function runWithTimeLimit<T>(work: () => T): T | null {
  let result: T | null = null
  sandbox.run = () => {
    result = work()
  }
  try {
    script.runInContext(context, { timeout: TIME_LIMIT_MS })
  } catch (error) {
    if (!isTimeout(error) && !(error instanceof RangeError)) throw error
    return null
  }
  return result
}

/** The error comes from the context of the script, whose `Error` is another one. */
function isTimeout(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

/** Keywords that can take time out of proportion: recursion, and every item compared with every other. */
const DEMANDING_KEYWORDS = ['$ref', '$dynamicRef', 'uniqueItems']

/**
 * Returns whether a payload could be made so that checking it takes long. A pattern is harmless when it takes time in
 * proportion to the text: anchored, without groups, and with one repetition at most. Errs on the safe side.
 */
export function isTooDemanding(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return false
  return Object.entries(schema).some(([name, value]: [string, unknown]) => {
    if (DEMANDING_KEYWORDS.includes(name)) return true
    if (name === 'pattern' && typeof value === 'string') return !isHarmless(value)
    if (name === 'patternProperties' && !Object.keys(value ?? {}).every(isHarmless)) return true
    return isTooDemanding(value)
  })
}

function isHarmless(pattern: string): boolean {
  const repetitions = pattern.match(/[*+?{]/g) ?? []
  return pattern.startsWith('^') && !/[()|]/.test(pattern) && repetitions.length <= 1
}
