import { visibleText } from './visible-text.ts'

/** Describes an error for the terminal, with all causes (one per address that refused). */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(describeError).join('; ')
  const text = error instanceof Error ? error.message || error.name : String(error)
  // A server's words may be in it; our own messages have several lines.
  return text.split('\n').map(visibleText).join('\n')
}
