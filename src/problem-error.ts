import {
  missingPermissions,
  permissionsForSubscription,
  type Grants,
  type PermissionFor,
} from './domain/permissions.ts'
import { PROBLEMS, type ProblemCode, type ProblemCodeOf } from './domain/problems.ts'

/**
 * One bad field of a request: JSON pointer into the body (`/url`) or `/` and the name of a query parameter, stable
 * code, and a readable detail.
 */
export type FieldError = { pointer: string; code: string; detail: string }

/** A member as the user of a browser knows it. */
export type NamedMember = {
  organisation: { id: string; name: string }
  member: { id: string; name: string }
}

type ProblemDetails = {
  detail?: string
  /** Whose session the browser has, and whom a portal link is for. */
  signedIn?: NamedMember
  requested?: NamedMember
  errors?: FieldError[]
  missingPermissions?: string[]
  headers?: Record<string, string>
}

type Problem = Omit<ProblemDetails, 'headers'> & { status: number; code: ProblemCode; title: string }

/**
 * An expected refusal that is answered as `application/problem+json` (RFC 9457). Status and title are those of the code
 * in {@link PROBLEMS}. Never carries a secret.
 */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly problem: Problem
  /** Of the answer. */
  readonly headers: Record<string, string>

  constructor(code: ProblemCode, { headers = {}, ...details }: ProblemDetails = {}) {
    const { status, title } = PROBLEMS[code]
    super(details.detail ?? title)
    this.problem = { title, status, code, ...details }
    this.headers = headers
  }

  /** Returns the body of the answer. */
  document(): string {
    return JSON.stringify({ type: `urn:posthorn:problem:${this.problem.code}`, ...this.problem })
  }
}

/** `header`: of the key that the route takes. */
export function unauthenticated(header = 'x-api-key'): ProblemError {
  return new ProblemError('unauthenticated', { detail: `Send a valid key in the ${header} header.` })
}

/** The same answer for what does not exist and for what belongs to another organisation. */
export function notFound(what: string): ProblemError {
  return new ProblemError('not_found', { detail: `No such ${what}.` })
}

/** Throws 403 naming the permissions that the member lacks. */
export function requirePermissions(grants: Grants, required: readonly string[]): void {
  const missing = missingPermissions(grants, required)
  if (missing.length === 0) return
  throw new ProblemError('missing_permission', {
    detail: `This key's member lacks: ${missing.join(', ')}.`,
    missingPermissions: missing,
  })
}

/** Throws 403 unless the member may see every event with these keys (spec 4.1). */
export function requireSubscriptionRights(
  { permissionFor }: { permissionFor: PermissionFor },
  grants: Grants,
  eventKeys: readonly string[],
): void {
  requirePermissions(grants, permissionsForSubscription(eventKeys, permissionFor))
}

/** Names the first errors only, so that a small request cannot cause a huge answer. */
export function invalidFields(all: readonly FieldError[]): ProblemError {
  const errors = firstErrors(all)
  const detail = [...new Set(errors.slice(0, MAX_IN_DETAIL).map(inWords))].join(' ')
  return new ProblemError('invalid_fields', { detail, errors })
}

/** Errors that the detail of a problem repeats in words; all of them are in its `errors`. */
const MAX_IN_DETAIL = 3

/** Returns a sentence. The detail of some errors is already one. */
function inWords({ pointer, detail }: FieldError): string {
  if (!/^[a-z]/.test(detail)) return detail
  return `${pointer.slice(1) || 'The body'} ${detail}.`
}

export function badRequest(code: ProblemCodeOf<400>, detail: string): ProblemError {
  return new ProblemError(code, { detail })
}

export function conflict(code: ProblemCodeOf<409>, detail: string): ProblemError {
  return new ProblemError(code, { detail })
}

/** The refusal of what needs an enabled webhook. */
export function webhookDisabled({ holdReason }: { holdReason: string | null }): ProblemError {
  return holdReason === null
    ? conflict('webhook_disabled', 'The webhook is disabled. Enable it first.')
    : conflict('webhook_held', `The operator holds the webhook: ${holdReason}`)
}

/** Nothing is sent of an event whose payload is erased. */
export function payloadErased(): ProblemError {
  return new ProblemError('payload_erased', {
    detail: 'The payload of the event is erased; the delivery cannot be attempted.',
  })
}

/** `allowed`: the methods that the path answers. */
export function methodNotAllowed(allowed: readonly string[]): ProblemError {
  const methods = allowed.join(', ')
  return new ProblemError('method_not_allowed', {
    detail: `This path answers ${methods}.`,
    headers: { allow: methods },
  })
}

export function unavailable(): ProblemError {
  return new ProblemError('unavailable', {
    detail:
      'The database did not answer in time. What was asked for may or may not have been done: try again, with the same Idempotency-Key if there was one.',
    headers: { 'retry-after': '2' },
  })
}

/** Nothing was done: by default since `PUBLISH_BACKLOG_LIMIT` deliveries wait for their first attempt. */
export function overloaded(
  cause = 'Too many deliveries wait for their first attempt.',
  retryAfterSeconds = 5,
): ProblemError {
  return new ProblemError('overloaded', {
    detail: `${cause} Nothing was done; try again later.`,
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

const MAX_ERRORS = 100

/** A field may lie below names of many characters, which each of its errors repeats. */
const MAX_POINTER_CHARACTERS = 32_768

/** Returns the errors that an answer names: the first, and as many more as keep it small. */
export function firstErrors<T extends { readonly pointer: string }>(errors: readonly T[]): T[] {
  let left = MAX_POINTER_CHARACTERS
  return errors.slice(0, MAX_ERRORS).filter(({ pointer }, index) => {
    left -= pointer.length
    return index === 0 || left >= 0
  })
}
