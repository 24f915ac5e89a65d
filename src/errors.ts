/**
 * One bad field of a request: JSON pointer into the body (`/url`) or `/` and the name of a query parameter, stable
 * code, and words for a person.
 */
export type FieldError = { pointer: string; code: string; detail: string }

type Problem = {
  status: number
  code: string
  title: string
  detail?: string
  errors?: FieldError[]
  missingPermissions?: string[]
  headers?: Record<string, string>
}

/** An expected refusal that is answered as `application/problem+json` (RFC 9457). Never carries a secret. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly problem: Problem

  constructor(problem: Problem) {
    super(problem.detail ?? problem.title)
    this.problem = problem
  }
}

export function unauthenticated(): ProblemError {
  return new ProblemError({
    status: 401,
    code: 'unauthenticated',
    title: 'A valid API key is needed',
    detail: 'Send a valid key in the x-api-key header.',
  })
}

/** The same answer for what does not exist and for what belongs to somebody else. */
export function notFound(what: string): ProblemError {
  return new ProblemError({ status: 404, code: 'not_found', title: 'Not found', detail: `No such ${what}.` })
}

/** `allowed`: the methods that the path answers. */
export function methodNotAllowed(allowed: readonly string[]): ProblemError {
  const methods = allowed.join(', ')
  return new ProblemError({
    status: 405,
    code: 'method_not_allowed',
    title: 'Method not allowed',
    detail: `This path answers ${methods}.`,
    headers: { allow: methods },
  })
}

export function forbidden(missing: string[]): ProblemError {
  return new ProblemError({
    status: 403,
    code: 'missing_permission',
    title: 'Permission missing',
    detail: `This key's member lacks: ${missing.join(', ')}.`,
    missingPermissions: missing,
  })
}

export function invalidFields(errors: FieldError[]): ProblemError {
  const names = [...new Set(errors.map((error) => error.pointer || '/'))].join(', ')
  return new ProblemError({
    status: 422,
    code: 'invalid_fields',
    title: 'Fields are not valid',
    detail: `Not valid: ${names}.`,
    errors,
  })
}

export function badRequest(code: string, detail: string): ProblemError {
  return new ProblemError({ status: 400, code, title: 'The request cannot be read', detail })
}

export function conflict(code: string, detail: string): ProblemError {
  return new ProblemError({ status: 409, code, title: 'Not possible in this state', detail })
}

export function unavailable(): ProblemError {
  return new ProblemError({
    status: 503,
    code: 'unavailable',
    title: 'Temporarily unavailable',
    detail:
      'The database did not answer in time. What was asked for may or may not have been done: try again, with the same Idempotency-Key if there was one.',
    headers: { 'retry-after': '2' },
  })
}

/** More deliveries wait for their first attempt than `PUBLISH_BACKLOG_LIMIT`. */
export function overloaded(): ProblemError {
  return new ProblemError({
    status: 503,
    code: 'overloaded',
    title: 'Overloaded',
    detail: 'Too many deliveries wait for their first attempt. Nothing was published; try again later.',
    headers: { 'retry-after': '5' },
  })
}
