/** Permissions that are not tied to an event key (design: docs/architecture.md, permissions). */
export const WEBHOOK_READ = 'webhook:read'
export const WEBHOOK_MANAGE = 'webhook:manage'
export const EVENT_PUBLISH = 'event:publish'

/** Whose holders are told when a webhook keeps failing (spec 6.4), and see who else was. */
export const ORGANIZATION_SETTINGS_UPDATE = 'organizationSettings:update'

/** Subscribes to every event; only members with full access may use it (spec 4.1). */
export const WILDCARD = '*'

/**
 * Key of the event that a person sends to one webhook to try it out. It cannot be published or subscribed to, and is
 * named so that reading it asks for `webhook:read`, like everything else about a webhook.
 */
export const TEST_EVENT_KEY = 'webhook:test'

/** What a member may do: `fullAccess` holds every permission. */
export type Grants = { readonly fullAccess: boolean; readonly permissions: readonly string[] }

/** Name of the right that `*` and the audit trail ask for. The flag gives it, and no permission of that name. */
export const FULL_ACCESS = 'fullAccess'

/** The permission that an event key asks of a subscriber or reader: `<entity>:read` (spec 4.1). */
export function permissionForEventKey(eventKey: string): string {
  const [entity] = eventKey.split(':', 1)
  return `${entity ?? eventKey}:read`
}

/** Those of `required` that `grants` lacks, each once, in the order given. */
export function missingPermissions(grants: Grants, required: readonly string[]): string[] {
  if (grants.fullAccess) return []
  const held = new Set(grants.permissions)
  held.delete(FULL_ACCESS)
  return [...new Set(required)].filter((permission) => !held.has(permission))
}

/** Whether the member may see the payload of events with this key (`TEST_EVENT_KEY` included). */
export function mayReadEvent(grants: Grants, eventKey: string): boolean {
  return missingPermissions(grants, [permissionForEventKey(eventKey)]).length === 0
}

/**
 * Whether the member may change a webhook with this subscription in every way, and so may see its whole URL and its
 * signing secret.
 */
export function mayChangeWebhook(grants: Grants, subscribedEventKeys: readonly string[]): boolean {
  return (
    missingPermissions(grants, [WEBHOOK_MANAGE, ...permissionsForSubscription(subscribedEventKeys)])
      .length === 0
  )
}

/** What a subscription to `eventKeys` asks of the member that makes or changes it. */
export function permissionsForSubscription(eventKeys: readonly string[]): string[] {
  return eventKeys.map((key) => (key === WILDCARD ? FULL_ACCESS : permissionForEventKey(key)))
}
