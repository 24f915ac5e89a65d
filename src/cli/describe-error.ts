/** Describes an error for the terminal, with all causes (one per address that refused). */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(describeError).join('; ')
  return error instanceof Error ? error.message : String(error)
}
