/** One environment variable: what it means, its default as text, and how text becomes a value (throws a reason). */
type Setting<T> = { variable: string; description: string; fallback?: string; parse: (text: string) => T }

export function setting<T>(
  variable: string,
  description: string,
  fallback: string | undefined,
  parse: (text: string) => T,
): Setting<T> {
  return fallback === undefined
    ? { variable, description, parse }
    : { variable, description, fallback, parse }
}
