import { problemIn, readJson, retryAfterMs } from '../../outbound/api-answer.ts'
import { describeError, visibleText } from '../../process/visible-text.ts'

/** The API refuses what was requested, and would refuse it again. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

/** The API cannot be reached, or takes the request later: after `retryAfterMs` where it names a time. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError'
  readonly retryAfterMs: number | null

  constructor(message: string, retryAfterMs: number | null = null) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

const MAX_SHOWN_LENGTH = 500

const NOT_POSTHORN = ', but not as Posthorn does: is this its address?'

type Api = { apiUrl: string; apiKey: string }

/**
 * Sends a GET to the API and returns its answer, a 200 of media type `type`. Throws UnavailableError where another try may
 * succeed, and RefusedError otherwise; each says in one line what the API answers.
 */
export async function getFromApi(
  api: Api,
  { path, type, headers }: { path: string; type: string; headers?: Record<string, string> },
  signal: AbortSignal,
): Promise<Response> {
  const { apiUrl, apiKey } = api
  const response = await fetch(`${apiUrl}${path}`, {
    headers: { ...headers, accept: type, 'x-api-key': apiKey },
    // A redirect could lead the key to another host.
    redirect: 'manual',
    signal,
  }).catch((error: unknown) => {
    throw unreachable(api, error)
  })
  const { status } = response
  const isOfType = response.headers.get('content-type')?.startsWith(type) === true
  if (status === 200 && isOfType) return response
  const answered = `${apiUrl} answers ${status}${await describeProblem(api, response)}`
  if (status === 408 || status === 429 || status >= 500)
    throw new UnavailableError(answered, retryAfterMs(response.headers.get('retry-after')))
  throw new RefusedError(answered)
}

/** Returns the organisation of the key's member. */
export async function findOrganisation(api: Api, signal: AbortSignal): Promise<string> {
  const response = await getFromApi(api, { path: '/api/session', type: 'application/json' }, signal)
  const session = (await readAnswer(api, response)) as { organisation?: { id?: unknown } } | null
  const id = session?.organisation?.id
  if (typeof id !== 'string') throw new RefusedError(`${api.apiUrl} answers 200${NOT_POSTHORN}`)
  return id
}

/** Returns code and reasons of a problem document (RFC 9457), or that there is none. */
async function describeProblem(api: Api, response: Response): Promise<string> {
  const problem = problemIn(await readAnswer(api, response))
  if (problem === null) return NOT_POSTHORN
  const { code, detail, errors = [{ detail }] } = problem
  const reasons = errors.map((error) => error.detail ?? '')
  return visibleText(` ${code}: ${reasons.join(' ')}`).slice(0, MAX_SHOWN_LENGTH)
}

function readAnswer(api: Api, response: Response): Promise<unknown> {
  return readJson(response).catch((error: unknown) => {
    throw unreachable(api, error)
  })
}

function unreachable({ apiUrl }: Api, error: unknown): UnavailableError {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return new UnavailableError(`${apiUrl} cannot be reached: ${visibleText(describeError(cause))}.`)
}
