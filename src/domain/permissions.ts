/**
 * An event key: an entity and what happened to it, two or more words between colons, such as `invoice:paid`. A word
 * begins with a letter and goes on with letters, digits, `-` and `_`.
 */
export const EVENT_KEY_PATTERN = '^[A-Za-z][A-Za-z0-9_-]*(:[A-Za-z][A-Za-z0-9_-]*)+$'
export const MAX_EVENT_KEY_LENGTH = 100

/** A permission: an entity and what may be done with it, such as `invoice:read`. */
export const PERMISSION_PATTERN = '^[A-Za-z][A-Za-z0-9_-]*:[A-Za-z][A-Za-z0-9_-]*$'

/** Permissions that are not tied to an event key (docs/api.md, Keys and permissions). */
export const WEBHOOK_READ = 'webhook:read'
export const WEBHOOK_MANAGE = 'webhook:manage'
export const EVENT_PUBLISH = 'event:publish'

/** Its holders are notified when a webhook keeps failing (spec 6.4), and see the other recipients. */
export const ORGANIZATION_SETTINGS_UPDATE = 'organizationSettings:update'

/** Subscribes to every event; only members with full access may use it (spec 4.1). */
export const WILDCARD = '*'

/**
 * Key of the event that a user sends to one webhook to test it. It cannot be published or subscribed to, and its name makes
 * `webhook:read` the permission to read it.
 */
export const TEST_EVENT_KEY = 'webhook:test'

/** What a member may do: `fullAccess` includes every permission. */
export type Grants = { readonly fullAccess: boolean; readonly permissions: readonly string[] }

/** The permission for `*` and the audit trail. Only the flag grants it, not a permission of that name. */
export const FULL_ACCESS = 'fullAccess'

/** Returns the permission to subscribe to or read an event key; the catalogue has it (`permissionFor`). */
export type PermissionFor = (eventKey: string) => string

/** Returns the permission of an event key for which the catalogue names no other: `<entity>:read` (spec 4.1). */
export function defaultPermissionFor(eventKey: string): string {
  const [entity] = eventKey.split(':', 1)
  return `${entity ?? eventKey}:read`
}

/** Returns the `required` permissions that `grants` lacks, each once, in the order given. */
export function missingPermissions(grants: Grants, required: readonly string[]): string[] {
  if (grants.fullAccess) return []
  const granted = new Set(grants.permissions)
  granted.delete(FULL_ACCESS)
  return [...new Set(required)].filter((permission) => !granted.has(permission))
}

/**
 * Whether the member may see the payload of events with this key (`TEST_EVENT_KEY` included) and what endpoints answered
 * to them. Whatever shows either asks here, or requires `permissionFor` of the key.
 */
export function mayReadPayload(grants: Grants, eventKey: string, permissionFor: PermissionFor): boolean {
  return missingPermissions(grants, [permissionFor(eventKey)]).length === 0
}

/** Whether the member may see `error`, our own sentence about an attempt. It quotes neither payload nor answer. */
export function mayReadErrors(grants: Grants): boolean {
  return missingPermissions(grants, [WEBHOOK_READ]).length === 0
}

/**
 * Whether the member may change a webhook with this subscription in every way, and so may see its whole URL and its
 * signing secret.
 */
export function mayChangeWebhook(
  grants: Grants,
  subscribedEventKeys: readonly string[],
  permissionFor: PermissionFor,
): boolean {
  const required = [WEBHOOK_MANAGE, ...permissionsForSubscription(subscribedEventKeys, permissionFor)]
  return missingPermissions(grants, required).length === 0
}

/** Returns the permissions that a member needs to create or change a subscription to `eventKeys`. */
export function permissionsForSubscription(
  eventKeys: readonly string[],
  permissionFor: PermissionFor,
): string[] {
  return eventKeys.map((key) => (key === WILDCARD ? FULL_ACCESS : permissionFor(key)))
}

/**
 * What an operator key may do: manage organisations, members, API keys and holds, publish for every organisation, open the
 * portal, observe the webhooks of all organisations.
 */
export const OPERATOR_SCOPES = ['manage', 'publish', 'portal', 'observe'] as const

export type OperatorScope = (typeof OPERATOR_SCOPES)[number]

/** A key of the platform's own backend, from `POSTHORN_OPERATOR_KEYS`. */
export type OperatorKey = { name: string; secret: string; scopes: readonly OperatorScope[] }

export function isOperatorScope(text: string): text is OperatorScope {
  return OPERATOR_SCOPES.some((scope) => scope === text)
}

/**
 * Returns whether a webhook with this subscription receives events with `eventKey`. A test event is sent to one webhook
 * regardless of its subscription, so it is always covered. The SQL function `stop_reason_of` states the same rule for the
 * database.
 */
export function isSubscribedTo(subscribedEventKeys: readonly string[], eventKey: string): boolean {
  if (eventKey === TEST_EVENT_KEY || subscribedEventKeys.includes(WILDCARD)) return true
  return subscribedEventKeys.includes(eventKey)
}

/** Returns whether every event that `narrower` receives is one that `wider` receives as well. */
export function includesSubscription(wider: readonly string[], narrower: readonly string[]): boolean {
  return wider.includes(WILDCARD) || narrower.every((key) => wider.includes(key))
}
