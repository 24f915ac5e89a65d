import { BRAND } from './theme.js'
import { memberText } from './json-text.js'

/** @import { Activity, ActivityRange, AuditEntry, Chosen, CreatedApiKey, Delivery, DeliveryDetail, EventDetail, EventKey, EventSummary, Incident, Overview, OwnApiKeys, Problem, PushSubscriptions, Replay, ReplayBody, ReplayCount, RetryJob, RetryMode, Session, SignedRequest, WebhookActivity, WebhookBody } from '../types.d.ts' */

/** The API answers a read within ten seconds. */
const READ_TIMEOUT_MS = 20_000

/** Exports, and work on many deliveries, may take two minutes. */
const LONG_TIMEOUT_MS = 150_000

/** An answer that is no success, in the API's own words. `problem.status` is 0 where no answer came. */
export class ApiProblem extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.detail ?? problem.title)
    this.problem = problem
  }
}

/**
 * True where the same request may succeed in a moment: no answer, too many requests, or the server is unavailable.
 * @param {unknown} error
 */
export function isTransient(error) {
  if (!(error instanceof ApiProblem)) return false
  const { status } = error.problem
  return status === 0 || status === 429 || status >= 500
}

/**
 * @template T
 * @param {string} text
 * @returns {T}
 */
export function parsed(text) {
  /** @type {unknown} */
  const value = JSON.parse(text)
  return /** @type {T} */ (value)
}

/**
 * Returns the text of the answer; where none came in time, throws that there is none. What waits for a request that was
 * aborted by its signal never goes on.
 * @param {string} method
 * @param {string} path
 * @param {{ body?: unknown, headers?: Record<string, string>, signal?: AbortSignal | null, timeoutMs?: number }} [options]
 * @returns {Promise<string>}
 */
export async function call(method, path, options = {}) {
  const { body, headers = {}, signal = null } = options
  const { timeoutMs = method === 'GET' ? READ_TIMEOUT_MS : LONG_TIMEOUT_MS } = options
  const deadline = AbortSignal.timeout(timeoutMs)
  const { ok, status, text } = await fetch(path, {
    method,
    credentials: 'same-origin',
    redirect: 'error',
    signal: signal === null ? deadline : AbortSignal.any([signal, deadline]),
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
    .then(async (answer) => ({ ok: answer.ok, status: answer.status, text: await answer.text() }))
    .catch(() => {
      if (signal?.aborted === true) return /** @type {Promise<never>} */ (new Promise(() => undefined))
      throw new ApiProblem({
        type: '',
        title: 'No answer',
        status: 0,
        code: 'no_answer',
        detail: `${BRAND.name} cannot be reached.`,
      })
    })
  if (!ok) throw new ApiProblem(toProblem(text, status))
  return text
}

/**
 * @param {string} text
 * @param {number} status
 * @returns {Problem}
 */
function toProblem(text, status) {
  try {
    /** @type {Problem | null} */
    const problem = parsed(text)
    // A gateway has documents of its own.
    if (typeof problem?.code === 'string') return { ...problem, status }
  } catch {
    // No JSON.
  }
  return { type: '', title: `HTTP ${String(status)}`, status, code: 'unknown' }
}

/**
 * @param {string} key
 * @returns {Promise<Session>}
 */
export async function signIn(key) {
  return parsed(await call('POST', '/api/session', { headers: { 'x-api-key': key } }))
}

/**
 * Uses a portal link up: afterwards the browser has a session of the link's member.
 * @param {string} token
 * @param {boolean} replace the user has confirmed that the session of another member is to end
 * @returns {Promise<{ address: string }>} where the link leads
 */
export async function openPortalLink(token, replace) {
  return parsed(await call('POST', '/api/session/portal-link', { body: { token, replace } }))
}

/**
 * Ends the session of this browser. Throws where it may go on.
 * @param {string} [path]
 */
export async function endSession(path = '/api/session') {
  try {
    await call('DELETE', path)
  } catch (error) {
    // It had ended before.
    if (!(error instanceof ApiProblem) || error.problem.status !== 401) throw error
  }
}

/**
 * @template [S=Session]
 * @param {string} [path] of the session
 * @returns {Promise<S | null>} null without a session
 */
export async function currentSession(path = '/api/session') {
  try {
    /** @type {S} */
    const session = parsed(await call('GET', path))
    return session
  } catch (error) {
    if (error instanceof ApiProblem && error.problem.status === 401) return null
    throw error
  }
}

/** @typedef {Record<string, string>} Query */

/**
 * @template T
 * @typedef {{ data: T[], nextCursor: string | null, searchedUntil?: string | null }} Page
 */

/**
 * The management API, of one organisation. A `requestId` is the same for a request that is sent again: it makes one job.
 * @param {string} organisationId
 * @param {() => void} onSignedOut called when the session has ended
 * @param {() => AbortSignal} viewSignal aborts what a view reads, once it is left
 */
export function createApi(organisationId, onSignedOut, viewSignal) {
  const organisation = pathOf('/api/orgs', organisationId)
  const [webhooks, events] = [`${organisation}/webhooks`, `${organisation}/events`]
  const [apiKeys, pushSubscriptions] = [`${organisation}/api-keys`, `${organisation}/push-subscriptions`]
  const [retryJobs, audit] = [`${webhooks}/retry-deliveries`, `${organisation}/audit`]
  const one = (/** @type {string} */ id) => pathOf(webhooks, id)
  /** @type {(id: string, deliveryId: string) => string} */
  const delivery = (id, deliveryId) => pathOf(`${one(id)}/deliveries`, deliveryId)

  /**
   * @param {string} method
   * @param {string} path
   * @param {Parameters<typeof call>[2]} [options]
   */
  const ask = async (method, path, options) => {
    try {
      return await call(method, path, options)
    } catch (error) {
      if (error instanceof ApiProblem && error.problem.status === 401) onSignedOut()
      throw error
    }
  }
  /** @param {string} path */
  const read = (path) => ask('GET', path, { signal: viewSignal() })
  /** @type {<T>(path: string, query?: Query) => Promise<T>} */
  const get = async (path, query) => parsed(await read(withQuery(path, query)))
  /** @type {<T>(path: string, body?: unknown, requestId?: string) => Promise<T>} */
  const post = async (path, body, requestId) => {
    const headers = requestId === undefined ? {} : { 'idempotency-key': requestId }
    return parsed(await ask('POST', path, { headers, ...(body !== undefined && { body }) }))
  }
  /** A list as lines of JSON, all pages of it. @type {(path: string, query: Query) => Promise<string>} */
  const lines = (path, query) => {
    const headers = { accept: 'application/x-ndjson' }
    return ask('GET', withQuery(path, query), { headers, timeoutMs: LONG_TIMEOUT_MS })
  }

  return {
    /** @type {() => Promise<{ data: Overview[] }>} */
    overview: () => get(`${webhooks}/overview`),
    /** @type {() => Promise<{ data: EventKey[] }>} */
    eventKeys: () => get('/api/event-keys'),
    /** @type {(body: WebhookBody, idempotencyKey: string) => Promise<{ id: string, signingSecret: string }>} */
    create: (body, idempotencyKey) => post(webhooks, body, idempotencyKey),
    /** @type {(id: string, body: WebhookBody) => Promise<string>} */
    change: (id, body) => ask('PATCH', one(id), { body }),
    /** @type {(id: string) => Promise<string>} */
    remove: (id) => ask('DELETE', one(id)),
    /** @type {(id: string) => Promise<{ signingSecret: string }>} */
    signingSecret: (id) => get(`${one(id)}/signing-secret`),
    /** @type {(id: string, range: ActivityRange) => Promise<Activity>} */
    activity: (id, range) => get(`${one(id)}/activity`, { range }),
    /** @type {() => Promise<{ data: WebhookActivity[] }>} */
    activities: () => get(`${webhooks}/activity`),
    /** @type {(id: string, query: Query) => Promise<Page<Incident>>} */
    incidents: (id, query) => get(`${one(id)}/incidents`, query),
    /** @type {(id: string, query: Query) => Promise<Page<Delivery>>} */
    deliveries: (id, query) => get(`${one(id)}/deliveries`, query),
    /** @type {(id: string, query: Query) => Promise<string>} */
    deliveryLines: (id, query) => lines(`${one(id)}/deliveries`, query),
    /** @type {(query: Query) => Promise<{ data: Delivery[] }>} */
    recentDeliveries: (query) => get(`${webhooks}/recent-deliveries`, query),
    /** @returns {Promise<string>} an address of the event stream, good for one request */
    async streamUrl() {
      /** @type {{ ticket: string }} */
      const { ticket } = await post(`${events}/stream-tickets`)
      return withQuery(`${events}/stream`, { ticket })
    },
    /** @type {(id: string, deliveryId: string) => Promise<DeliveryDetail>} */
    delivery: async (id, deliveryId) => withPayloadText(await read(delivery(id, deliveryId))),
    /** @type {(id: string, deliveryId: string) => Promise<SignedRequest>} */
    deliveryRequest: (id, deliveryId) => get(`${delivery(id, deliveryId)}/request`),
    /** @type {(id: string, deliveryId: string) => Promise<string>} */
    retryOne: (id, deliveryId) => ask('POST', `${delivery(id, deliveryId)}/retry`),
    /** @type {(id: string, deliveryId: string) => Promise<string>} */
    discardOne: (id, deliveryId) => ask('POST', `${delivery(id, deliveryId)}/discard`),
    /** @type {(id: string) => Promise<{ discarded: number }>} */
    discardFailed: (id) => post(`${one(id)}/discard-failed`),
    /** @type {(id: string, body: Chosen) => Promise<{ discarded: number }>} */
    discardDeliveries: (id, body) => post(`${one(id)}/discard`, body),
    /** Of `eventKey` the example is sent; `webhook:test` without one. @type {(id: string, eventKey?: string) => Promise<{ deliveryId: string }>} */
    sendTest: (id, eventKey) => post(`${one(id)}/test`, eventKey === undefined ? undefined : { eventKey }),
    /** @type {(body: { mode: RetryMode, id?: string } & Partial<Chosen>, requestId: string) => Promise<RetryJob>} */
    retryDeliveries: (body, requestId) => post(retryJobs, body, requestId),
    /** @type {(jobId: string) => Promise<RetryJob>} */
    retryJob: (jobId) => get(pathOf(retryJobs, jobId)),
    /** @type {(query: Query) => Promise<Page<RetryJob>>} */
    retryJobs: (query) => get(retryJobs, query),
    /** @type {(id: string, body: ReplayBody) => Promise<ReplayCount>} */
    countReplay: (id, body) => post(`${one(id)}/replays`, { ...body, dryRun: true }),
    /** @type {(id: string, body: ReplayBody, requestId: string) => Promise<Replay>} */
    replay: (id, body, requestId) => post(`${one(id)}/replays`, body, requestId),
    /** @type {(id: string) => Promise<{ data: Replay[] }>} */
    replays: (id) => get(`${one(id)}/replays`),
    /** @type {(id: string, jobId: string) => Promise<string>} */
    cancelReplay: (id, jobId) => ask('DELETE', pathOf(`${one(id)}/replays`, jobId)),
    /** @type {(query: Query) => Promise<Page<EventSummary>>} */
    events: (query) => get(events, query),
    eventLines: (/** @type {Query} */ query) => lines(events, query),
    /** @type {(eventId: string) => Promise<EventDetail>} */
    event: async (eventId) => withPayloadText(await read(pathOf(events, eventId))),
    /** @type {(eventId: string) => Promise<string>} */
    erasePayload: (eventId) => ask('DELETE', `${pathOf(events, eventId)}/payload`),
    /** @type {(query: Query) => Promise<Page<AuditEntry>>} */
    audit: (query) => get(audit, query),
    /** @type {() => Promise<OwnApiKeys>} */
    ownApiKeys: () => get(apiKeys),
    /** @type {(body: { name: string, expiresAt: string | null }) => Promise<CreatedApiKey>} */
    createOwnApiKey: (body) => post(apiKeys, body),
    /** @type {(id: string) => Promise<string>} */
    revokeOwnApiKey: (id) => ask('DELETE', pathOf(apiKeys, id)),
    /** Not for one view: a sign-in reads them too. @type {() => Promise<PushSubscriptions>} */
    pushSubscriptions: async () => parsed(await ask('GET', pushSubscriptions)),
    /** @type {(body: PushSubscriptionJSON) => Promise<unknown>} */
    subscribeToPush: (body) => post(pushSubscriptions, body),
    /** @type {(id: string) => Promise<string>} */
    unsubscribeFromPush: (id) => ask('DELETE', pathOf(pushSubscriptions, id)),
  }
}

/** @type {(collection: string, id: string) => string} */
const pathOf = (collection, id) => `${collection}/${encodeURIComponent(id)}`

/** @type {(path: string, query?: Query) => string} */
const withQuery = (path, query) =>
  query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`

/**
 * Reads an answer with a payload, and adds its text, token by token as it is in the answer.
 * @template T
 * @param {string} text
 * @returns {T}
 */
function withPayloadText(text) {
  /** @type {{ payload: unknown }} */
  const detail = parsed(text)
  const payloadText = detail.payload === null ? null : memberText(text, 'payload')
  return /** @type {T} */ (/** @type {unknown} */ ({ ...detail, payloadText }))
}
