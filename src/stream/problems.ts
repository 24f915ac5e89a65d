import { ProblemError } from '../errors.ts'

/** Returns the 429 for a key with `limit` open streams. */
export function tooManyStreams(limit: number): ProblemError {
  return new ProblemError('too_many_streams', {
    detail: `This key may have ${limit} streams open at once. Close one, or wait until one has ended.`,
    headers: { 'retry-after': '5' },
  })
}

/** Returns the 503 of a process that can open no stream for now. */
export function noStreamNow(detail: string): ProblemError {
  return new ProblemError('no_stream_now', {
    detail: `${detail} Try again.`,
    headers: { 'retry-after': '2' },
  })
}
