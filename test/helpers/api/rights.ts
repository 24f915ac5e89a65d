import { createECDH, randomBytes } from 'node:crypto'

/** Kinds of callers, with the permissions of their member. The webhook that they ask for has `customer:created`. */
export const CALLERS = {
  none: [],
  revoked: [],
  foreign: [],
  nothing: ['something:else'],
  reader: ['webhook:read'],
  keyReader: ['webhook:read', 'customer:read'],
  publisher: ['event:publish'],
  manager: ['webhook:read', 'webhook:manage', 'invoice:read'],
  keyManager: ['webhook:read', 'webhook:manage', 'customer:read'],
  full: [],
  manageOperator: [],
  publishOperator: [],
  portalOperator: [],
  observeOperator: [],
} as const satisfies Record<string, readonly string[]>

export type CallerName = keyof typeof CALLERS

/** Callers with an operator key, by the name of the key. */
export const OPERATORS = {
  manageOperator: 'manager',
  publishOperator: 'publisher',
  portalOperator: 'portal',
  observeOperator: 'observer',
} as const satisfies Partial<Record<CallerName, string>>

/**
 * One call of a route, and who may make it: everybody else gets 401 without a valid key, 404 from another organisation
 * and 403 else. An operator key opens the operator API, publishing and erasing a payload; no other key does. `what` distinguishes several calls of one route.
 */
export type Right = {
  operation: string
  what?: string
  to: readonly CallerName[]
  /** What those who may get. */
  status: number
  body?: () => unknown
  query?: string
  /** The webhook and its delivery before the call. */
  subscribedEventKeys?: string[]
  enabled?: boolean
  state?: 'failed' | 'waiting'
}

export const URL_OF_WEBHOOK = 'https://hooks.customer.com/'

const FULL = ['full'] as const
const KEY_MANAGERS = ['keyManager', 'full'] as const
const MANAGERS = ['manager', ...KEY_MANAGERS] as const
const KEY_READERS = ['keyReader', ...KEY_MANAGERS] as const
const READERS = ['reader', 'keyReader', ...MANAGERS] as const
const MEMBERS = ['nothing', 'publisher', ...READERS] as const
const KEYS = ['foreign', ...MEMBERS] as const
const EVERYBODY = [
  ...(['none', 'revoked', ...KEYS] as const),
  ...(['manageOperator', 'publishOperator', 'portalOperator', 'observeOperator'] as const),
] as const
const MANAGE = ['manageOperator'] as const
const OBSERVE = ['observeOperator'] as const

const pushSubscription = (): object => {
  const keys = createECDH('prime256v1')
  keys.generateKeys()
  return {
    endpoint: `https://push.browser.com/${randomBytes(8).toString('hex')}`,
    keys: { p256dh: keys.getPublicKey('base64url'), auth: randomBytes(16).toString('base64url') },
  }
}

/** The body of an organisation and of a member. */
const person = () => ({ name: 'Zon', email: 'info@zon.example' })

const replay = () => ({ since: '2026-01-01T00:00:00.000Z' })

const webhook = (subscribedEventKeys: string[]) => () => ({
  url: URL_OF_WEBHOOK,
  subscribedEventKeys,
  enabled: true,
})

/** A call that changes a webhook with these event keys. */
const update = (
  what: string,
  to: readonly CallerName[],
  change: object,
  before: Pick<Right, 'subscribedEventKeys' | 'enabled'> = {},
): Right => ({ operation: 'updateWebhook', what, to, status: 200, body: () => change, ...before })

const ELSEWHERE = 'https://elsewhere.customer.com/'
const TWO_KEYS = { subscribedEventKeys: ['customer:created', 'customer:updated'] }
const ALL_KEYS = { subscribedEventKeys: ['*'] }
const ONE_KEY = { subscribedEventKeys: ['customer:created'] }

/** Every route, by its operation. A new route without a line here fails the test that reads this. */
export const RIGHTS: readonly Right[] = [
  { operation: 'getHealth', to: EVERYBODY, status: 200 },
  { operation: 'getReadiness', to: EVERYBODY, status: 200 },
  { operation: 'getOpenApi', to: EVERYBODY, status: 200 },
  { operation: 'listEventKeys', to: KEYS, status: 200 },
  { operation: 'signIn', to: KEYS, status: 200 },
  { operation: 'getSession', to: KEYS, status: 200 },
  { operation: 'signOut', to: KEYS, status: 204 },
  // Any holder of the link; here no page of the product's own asks.
  { operation: 'createPortalLink', to: ['portalOperator'], status: 201, body: () => ({}) },
  { operation: 'openPortalLink', to: EVERYBODY, status: 403, body: () => ({ token: 'x' }) },

  { operation: 'listWebhooks', to: READERS, status: 200 },
  { operation: 'getOverview', to: READERS, status: 200 },
  { operation: 'getWebhook', to: READERS, status: 200 },
  { operation: 'getActivity', to: READERS, status: 200 },
  { operation: 'listActivity', to: READERS, status: 200 },
  { operation: 'listRecentDeliveries', to: READERS, status: 200 },
  { operation: 'createWebhook', to: KEY_MANAGERS, status: 201, body: webhook(['customer:created']) },
  { operation: 'createWebhook', what: 'with *', to: FULL, status: 201, body: webhook(['*']) },
  update('to a new URL', KEY_MANAGERS, { url: ELSEWHERE }),
  update('to a new URL where it has *', FULL, { url: ELSEWHERE }, ALL_KEYS),
  update('with one more key', KEY_MANAGERS, TWO_KEYS),
  update('to another key', KEY_MANAGERS, { subscribedEventKeys: ['customer:updated'] }),
  update('to *', FULL, ALL_KEYS),
  update('on', KEY_MANAGERS, { enabled: true }, { enabled: false }),
  update('off and to a new URL', KEY_MANAGERS, { enabled: false, url: ELSEWHERE }),
  update('off', MANAGERS, { enabled: false }),
  update('off where it has *', MANAGERS, { enabled: false }, ALL_KEYS),
  update('with one key less', MANAGERS, ONE_KEY, TWO_KEYS),
  update('from * to a list', MANAGERS, ONE_KEY, ALL_KEYS),
  update('with nothing', MANAGERS, {}),
  update('to what it is', MANAGERS, { url: URL_OF_WEBHOOK, ...ONE_KEY, enabled: true }),
  { operation: 'deleteWebhook', to: MANAGERS, status: 204 },
  { operation: 'getSigningSecret', to: KEY_MANAGERS, status: 200 },
  { operation: 'getSigningSecret', what: 'where it has *', to: FULL, status: 200, ...ALL_KEYS },

  { operation: 'getDeliveryStats', to: READERS, status: 200 },
  { operation: 'listDeliveries', to: READERS, status: 200 },
  { operation: 'getDelivery', to: KEY_READERS, status: 200 },
  { operation: 'getDeliveryRequest', to: KEY_MANAGERS, status: 200 },
  { operation: 'getDeliveryRequest', what: 'where it has *', to: FULL, status: 200, ...ALL_KEYS },
  { operation: 'listIncidents', to: READERS, status: 200 },
  { operation: 'retryDelivery', to: MANAGERS, status: 202 },
  { operation: 'discardDelivery', to: MANAGERS, status: 200, state: 'failed' },
  { operation: 'discardFailed', to: MANAGERS, status: 202 },
  {
    operation: 'discardDeliveries',
    to: MANAGERS,
    status: 202,
    body: () => ({ filter: { state: 'failed' } }),
  },
  { operation: 'testWebhook', to: MANAGERS, status: 202 },
  {
    operation: 'testWebhook',
    what: 'with an event key',
    to: KEY_MANAGERS,
    status: 202,
    body: () => ({ eventKey: 'customer:created' }),
  },
  { operation: 'retryDeliveries', to: MANAGERS, status: 202, body: () => ({ mode: 'failed' }) },
  { operation: 'listRetryJobs', to: READERS, status: 200 },
  { operation: 'getRetryJob', to: READERS, status: 200 },
  { operation: 'replayEvents', to: KEY_MANAGERS, status: 202, body: replay },
  { operation: 'replayEvents', what: 'where it has *', to: FULL, status: 202, body: replay, ...ALL_KEYS },
  {
    operation: 'replayEvents',
    what: 'of one key where it has *',
    to: KEY_MANAGERS,
    status: 202,
    body: () => ({ ...replay(), eventKeys: ['customer:created'] }),
    ...ALL_KEYS,
  },
  {
    operation: 'replayEvents',
    what: 'as a dry run',
    to: KEY_MANAGERS,
    status: 200,
    body: () => ({ ...replay(), dryRun: true }),
  },
  { operation: 'listReplays', to: READERS, status: 200 },
  { operation: 'getReplay', to: READERS, status: 200 },
  { operation: 'cancelReplay', to: MANAGERS, status: 204 },

  {
    operation: 'publishEvent',
    to: ['publisher', 'full', 'publishOperator'],
    status: 202,
    body: () => ({ event: 'customer:created', data: { id: 'cus_1' } }),
  },
  { operation: 'listEvents', to: MEMBERS, status: 200 },
  { operation: 'getEvent', to: ['publisher', ...KEY_READERS], status: 200 },
  { operation: 'eraseEventPayload', to: ['full', 'manageOperator'], status: 204 },
  { operation: 'streamEvents', to: KEY_READERS, status: 200, query: '?events=customer:created' },
  { operation: 'streamEvents', what: 'of *', to: FULL, status: 200, query: '?events=*' },
  { operation: 'createStreamTicket', to: MEMBERS, status: 201 },

  { operation: 'listPushSubscriptions', to: MEMBERS, status: 200 },
  { operation: 'createPushSubscription', to: MEMBERS, status: 201, body: pushSubscription },
  { operation: 'deletePushSubscription', to: MEMBERS, status: 204 },
  { operation: 'deletePushSubscriptions', to: MEMBERS, status: 204 },
  { operation: 'listOwnApiKeys', to: MEMBERS, status: 200 },
  { operation: 'createOwnApiKey', to: MEMBERS, status: 201, body: () => ({ name: 'another' }) },
  { operation: 'revokeOwnApiKey', to: MEMBERS, status: 204 },
  { operation: 'listAudit', to: FULL, status: 200 },

  { operation: 'listOrganisations', to: MANAGE, status: 200 },
  { operation: 'getOrganisation', to: MANAGE, status: 200 },
  { operation: 'putOrganisation', to: MANAGE, status: 200, body: person },
  { operation: 'eraseOrganisation', to: MANAGE, status: 202 },
  { operation: 'listMembers', to: MANAGE, status: 200 },
  { operation: 'getMember', to: MANAGE, status: 200 },
  { operation: 'putMember', to: MANAGE, status: 200, body: person },
  { operation: 'deleteMember', to: MANAGE, status: 204 },
  { operation: 'deleteSessions', to: MANAGE, status: 204 },
  { operation: 'listApiKeys', to: MANAGE, status: 200 },
  { operation: 'createApiKey', to: MANAGE, status: 201, body: () => ({ name: 'another' }) },
  { operation: 'revokeApiKey', to: MANAGE, status: 204 },
  { operation: 'getOperatorOverview', to: OBSERVE, status: 200 },
  { operation: 'listOperatorWebhooks', to: OBSERVE, status: 200, query: '?state=degraded' },
  { operation: 'holdWebhook', to: MANAGE, status: 200, body: () => ({ reason: 'It floods us.' }) },
  { operation: 'releaseWebhook', to: MANAGE, status: 200 },
  { operation: 'signInOperator', to: OBSERVE, status: 200 },
  { operation: 'getOperatorSession', to: OBSERVE, status: 200 },
  { operation: 'signOutOperator', to: OBSERVE, status: 204 },
]
