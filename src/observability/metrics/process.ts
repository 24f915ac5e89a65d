import type { Define } from './define.ts'

/** `exception`: ends the process. `rejection`: an unhandled promise rejection. */
type UnexpectedErrorKind = 'exception' | 'rejection'

export type ProcessMetrics = { unexpectedError(kind: UnexpectedErrorKind): void }

const KINDS: readonly UnexpectedErrorKind[] = ['exception', 'rejection']

export function createProcessMetrics(define: Define): ProcessMetrics {
  const errors = define.counter(
    'unexpected_errors_total',
    'Errors that no part of the process caught: exception (the process ends), rejection',
    ['kind'],
  )
  for (const kind of KINDS) errors.inc({ kind }, 0)
  return { unexpectedError: (kind) => errors.inc({ kind }) }
}
