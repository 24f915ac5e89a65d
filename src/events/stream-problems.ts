import { ProblemError } from '../errors.ts'

/** 429 where a key has as many streams open as it may have. */
export function tooManyStreams(most: number): ProblemError {
  return new ProblemError({
    status: 429,
    code: 'too_many_streams',
    title: 'Too many streams',
    detail: `This key may have ${most} streams open at once. Close one, or wait until one has ended.`,
    headers: { 'retry-after': '5' },
  })
}

/** 503 where this process can open none for now. */
export function noStreamNow(detail: string): ProblemError {
  return new ProblemError({
    status: 503,
    code: 'no_stream_now',
    title: 'No stream can be opened for now',
    detail: `${detail} Try again.`,
    headers: { 'retry-after': '2' },
  })
}
