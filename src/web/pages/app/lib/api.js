import { BRAND } from './html.js'
import { memberText } from './json-text.js'

/** @import { Activity, ActivityRange, AuditEntry, Chosen, CreatedApiKey, Delivery, DeliveryDetail, EventDetail, EventKey, EventSummary, Incident, Overview, OwnApiKeys, Problem, PushSubscriptions, Replay, ReplayBody, ReplayCount, RetryJob, RetryMode, Session, SignedRequest, WebhookActivity } from '../types.d.ts' */

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
 * @param {string} text
 * @returns {unknown}
 */
export function parsed(text) {
  return JSON.parse(text)
}

/**
 * @param {string} method
 * @param {string} path
 * @param {{ body?: unknown, headers?: Record<string, string> }} [options]
 * @returns {Promise<string>} the text of the answer
 */
export async function call(method, path, { body, headers = {} } = {}) {
  const answer = await fetch(path, {
    method,
    credentials: 'same-origin',
    redirect: 'error',
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => {
    throw new ApiProblem({
      type: '',
      title: 'No answer',
      status: 0,
      code: 'no_answer',
      detail: `${BRAND.name} cannot be reached.`,
    })
  })
  const text = await answer.text()
  if (!answer.ok) throw new ApiProblem(toProblem(text, answer.status))
  return text
}

/**
 * @param {string} text
 * @param {number} status
 * @returns {Problem}
 */
function toProblem(text, status) {
  try {
    return /** @type {Problem} */ (parsed(text))
  } catch {
    return { type: '', title: `HTTP ${String(status)}`, status, code: 'unknown' }
  }
}

/**
 * @param {string} key
 * @returns {Promise<Session>}
 */
export async function signIn(key) {
  return /** @type {Session} */ (
    parsed(await call('POST', '/api/session', { headers: { 'x-api-key': key } }))
  )
}

/**
 * Uses a portal link up: afterwards the browser has a session of the link's member.
 * @param {string} token
 * @param {boolean} replace the user has confirmed that the session of another member is to end
 * @returns {Promise<{ address: string }>} where the link leads
 */
export async function openPortalLink(token, replace) {
  return /** @type {{ address: string }} */ (
    parsed(await call('POST', '/api/session/portal-link', { body: { token, replace } }))
  )
}

/**
 * @template [S=Session]
 * @param {string} [path] of the session
 * @returns {Promise<S | null>} null without a session
 */
export async function currentSession(path = '/api/session') {
  try {
    return /** @type {S} */ (parsed(await call('GET', path)))
  } catch (error) {
    if (error instanceof ApiProblem && error.problem.status === 401) return null
    throw error
  }
}

/**
 * The management API, of one organisation.
 * @param {string} organisationId
 * @param {() => void} onSignedOut called when the session has ended
 */
export function createApi(organisationId, onSignedOut) {
  const organisation = `/api/orgs/${encodeURIComponent(organisationId)}`
  const webhooks = `${organisation}/webhooks`
  const apiKeys = `${organisation}/api-keys`
  const pushSubscriptions = `${organisation}/push-subscriptions`
  /** @param {string} id */
  const one = (id) => `${webhooks}/${encodeURIComponent(id)}`
  /**
   * @param {string} id
   * @param {string} deliveryId
   */
  const delivery = (id, deliveryId) => `${one(id)}/deliveries/${encodeURIComponent(deliveryId)}`

  /**
   * @param {string} method
   * @param {string} path
   * @param {{ body?: unknown, headers?: Record<string, string> }} [options]
   */
  const ask = async (method, path, options) => {
    try {
      return await call(method, path, options)
    } catch (error) {
      if (error instanceof ApiProblem && error.problem.status === 401) onSignedOut()
      throw error
    }
  }
  /**
   * @template T
   * @param {string} method
   * @param {string} path
   * @param {{ body?: unknown, headers?: Record<string, string> }} [options]
   * @returns {Promise<T>}
   */
  const json = async (method, path, options) => /** @type {T} */ (parsed(await ask(method, path, options)))

  /**
   * @param {string} path of a list
   * @param {Record<string, string>} query
   */
  const lines = (path, query) =>
    ask('GET', `${path}?${new URLSearchParams(query).toString()}`, {
      headers: { accept: 'application/x-ndjson' },
    })

  return {
    /** @returns {Promise<{ data: Overview[] }>} */
    overview: () => json('GET', `${webhooks}/overview`),
    /** @returns {Promise<{ data: EventKey[] }>} */
    eventKeys: () => json('GET', '/api/event-keys'),
    /**
     * @param {{ url: string, subscribedEventKeys: string[], enabled: boolean, description?: string }} body
     * @returns {Promise<{ id: string, signingSecret: string }>}
     */
    create: (body) => json('POST', webhooks, { body, headers: { 'idempotency-key': crypto.randomUUID() } }),
    /**
     * @param {string} id
     * @param {{ url?: string, subscribedEventKeys?: string[], enabled?: boolean, description?: string }} body
     */
    change: (id, body) => ask('PATCH', one(id), { body }),
    /** @param {string} id */
    remove: (id) => ask('DELETE', one(id)),
    /**
     * @param {string} id
     * @returns {Promise<{ signingSecret: string }>}
     */
    signingSecret: (id) => json('GET', `${one(id)}/signing-secret`),
    /**
     * @param {string} id
     * @param {ActivityRange} range
     * @returns {Promise<Activity>}
     */
    activity: (id, range) => json('GET', `${one(id)}/activity?range=${range}`),
    /**
     * @param {string} id
     * @param {Record<string, string>} query
     * @returns {Promise<{ data: Incident[], nextCursor: string | null }>}
     */
    incidents: (id, query) => json('GET', `${one(id)}/incidents?${new URLSearchParams(query).toString()}`),
    /**
     * @param {string} id
     * @param {Record<string, string>} query
     * @returns {Promise<{ data: Delivery[], nextCursor: string | null, searchedUntil: string | null }>}
     */
    deliveries: (id, query) => json('GET', `${one(id)}/deliveries?${new URLSearchParams(query).toString()}`),
    /**
     * The same as lines of JSON, all pages of it.
     * @param {string} id
     * @param {Record<string, string>} query
     */
    deliveryLines: (id, query) => lines(`${one(id)}/deliveries`, query),
    /**
     * @param {Record<string, string>} query
     * @returns {Promise<{ data: Delivery[] }>}
     */
    recentDeliveries: (query) =>
      json('GET', `${webhooks}/recent-deliveries?${new URLSearchParams(query).toString()}`),
    /** @returns {Promise<string>} an address of the event stream, good for one request */
    async streamUrl() {
      /** @type {{ ticket: string }} */
      const { ticket } = await json('POST', `${organisation}/events/stream-tickets`)
      return `${organisation}/events/stream?${new URLSearchParams({ ticket }).toString()}`
    },
    /**
     * @param {string} id
     * @param {string} deliveryId
     * @returns {Promise<DeliveryDetail>}
     */
    async delivery(id, deliveryId) {
      const text = await ask('GET', delivery(id, deliveryId))
      return withPayloadText(/** @type {DeliveryDetail & { payload: unknown }} */ (parsed(text)), text)
    },
    /**
     * @param {string} id
     * @param {string} deliveryId
     */
    retryOne: (id, deliveryId) => ask('POST', `${delivery(id, deliveryId)}/retry`),
    /**
     * @param {string} id
     * @param {string} deliveryId
     */
    discardOne: (id, deliveryId) => ask('POST', `${delivery(id, deliveryId)}/discard`),
    /**
     * @param {string} id
     * @returns {Promise<{ discarded: number }>}
     */
    discardFailed: (id) => json('POST', `${one(id)}/discard-failed`),
    /**
     * @param {string} id
     * @param {string} [eventKey] whose example is sent; `webhook:test` without one
     * @returns {Promise<{ deliveryId: string }>}
     */
    sendTest: (id, eventKey) =>
      json('POST', `${one(id)}/test`, eventKey === undefined ? {} : { body: { eventKey } }),
    /**
     * @param {{ mode: RetryMode, id?: string } & Partial<Chosen>} body
     * @param {string} requestId the same for a request that is sent again: it makes one job
     * @returns {Promise<RetryJob>}
     */
    retryDeliveries: (body, requestId) =>
      json('POST', `${webhooks}/retry-deliveries`, { body, headers: { 'idempotency-key': requestId } }),
    /**
     * @param {string} jobId
     * @returns {Promise<RetryJob>}
     */
    retryJob: (jobId) => json('GET', `${webhooks}/retry-deliveries/${encodeURIComponent(jobId)}`),
    /**
     * @param {Record<string, string>} query
     * @returns {Promise<{ data: RetryJob[], nextCursor: string | null }>}
     */
    retryJobs: (query) =>
      json('GET', `${webhooks}/retry-deliveries?${new URLSearchParams(query).toString()}`),
    /**
     * @param {string} id
     * @param {ReplayBody} body
     * @returns {Promise<ReplayCount>}
     */
    countReplay: (id, body) => json('POST', `${one(id)}/replays`, { body: { ...body, dryRun: true } }),
    /**
     * @param {string} id
     * @param {ReplayBody} body
     * @param {string} requestId the same for a request that is sent again: it makes one job
     */
    replay: (id, body, requestId) =>
      ask('POST', `${one(id)}/replays`, { body, headers: { 'idempotency-key': requestId } }),
    /**
     * @param {string} id
     * @returns {Promise<{ data: Replay[] }>}
     */
    replays: (id) => json('GET', `${one(id)}/replays`),
    /**
     * @param {string} id
     * @param {string} jobId
     */
    cancelReplay: (id, jobId) => ask('DELETE', `${one(id)}/replays/${encodeURIComponent(jobId)}`),
    signOut: () => call('DELETE', '/api/session'),
    /**
     * @param {string} id
     * @param {Chosen} body
     * @returns {Promise<{ discarded: number }>}
     */
    discardDeliveries: (id, body) => json('POST', `${one(id)}/discard`, { body }),
    /**
     * @param {string} id
     * @param {string} deliveryId
     * @returns {Promise<SignedRequest>}
     */
    deliveryRequest: (id, deliveryId) => json('GET', `${delivery(id, deliveryId)}/request`),
    /**
     * @param {Record<string, string>} query
     * @returns {Promise<{ data: EventSummary[], nextCursor: string | null, searchedUntil: string | null }>}
     */
    events: (query) => json('GET', `${organisation}/events?${new URLSearchParams(query).toString()}`),
    /** @param {Record<string, string>} query */
    eventLines: (query) => lines(`${organisation}/events`, query),
    /**
     * @param {string} eventId
     * @returns {Promise<EventDetail>}
     */
    async event(eventId) {
      const text = await ask('GET', `${organisation}/events/${encodeURIComponent(eventId)}`)
      return withPayloadText(/** @type {EventDetail & { payload: unknown }} */ (parsed(text)), text)
    },
    /** @param {string} eventId */
    erasePayload: (eventId) => ask('DELETE', `${organisation}/events/${encodeURIComponent(eventId)}/payload`),
    /** @returns {Promise<{ data: WebhookActivity[] }>} */
    activities: () => json('GET', `${webhooks}/activity`),
    /**
     * @param {Record<string, string>} query
     * @returns {Promise<{ data: AuditEntry[], nextCursor: string | null }>}
     */
    audit: (query) => json('GET', `${organisation}/audit?${new URLSearchParams(query).toString()}`),
    /** @returns {Promise<OwnApiKeys>} */
    ownApiKeys: () => json('GET', apiKeys),
    /**
     * @param {{ name: string, expiresAt: string | null }} body
     * @returns {Promise<CreatedApiKey>}
     */
    createOwnApiKey: (body) => json('POST', apiKeys, { body }),
    /** @param {string} id */
    revokeOwnApiKey: (id) => ask('DELETE', `${apiKeys}/${encodeURIComponent(id)}`),
    /** @returns {Promise<PushSubscriptions>} */
    pushSubscriptions: () => json('GET', pushSubscriptions),
    /** @param {PushSubscriptionJSON} body */
    subscribeToPush: (body) => ask('POST', pushSubscriptions, { body }),
    /** @param {string} id */
    unsubscribeFromPush: (id) => ask('DELETE', `${pushSubscriptions}/${encodeURIComponent(id)}`),
  }
}

/**
 * Adds the payload's text, token by token as it is in the answer.
 * @template {{ payload: unknown }} Detail
 * @param {Detail} detail
 * @param {string} text
 */
function withPayloadText(detail, text) {
  return { ...detail, payloadText: detail.payload === null ? null : memberText(text, 'payload') }
}
