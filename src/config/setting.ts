/**
 * One environment variable: what it means, its default as text, and how text becomes a value (throws a reason). `isSecret`:
 * its value may lie in a file instead, which `<variable>_FILE` names.
 */
type Setting<T> = {
  variable: string
  description: string
  fallback?: string
  parse: (text: string) => T
  isSecret: boolean
}

export function setting<T>(
  variable: string,
  description: string,
  fallback: string | undefined,
  parse: (text: string) => T,
): Setting<T> {
  return { variable, description, parse, isSecret: false, ...(fallback === undefined ? {} : { fallback }) }
}

/** The same for a secret value. */
export function secretSetting<T>(...given: Parameters<typeof setting<T>>): Setting<T> {
  return { ...setting(...given), isSecret: true }
}
