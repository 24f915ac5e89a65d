/** What went wrong, for the person at the terminal; several causes (one per address that refused) stand together. */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(describeError).join('; ')
  return error instanceof Error ? error.message : String(error)
}
