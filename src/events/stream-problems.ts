import { ProblemError } from '../errors.ts'

/** 429 where a key has as many streams open as it may have. */
export function tooManyStreams(most: number): ProblemError {
  return new ProblemError('too_many_streams', {
    detail: `This key may have ${most} streams open at once. Close one, or wait until one has ended.`,
    headers: { 'retry-after': '5' },
  })
}

/** 503 where this process can open none for now. */
export function noStreamNow(detail: string): ProblemError {
  return new ProblemError('no_stream_now', {
    detail: `${detail} Try again.`,
    headers: { 'retry-after': '2' },
  })
}
