import { ECDH } from 'node:crypto'
import type { Static } from 'typebox'
import {
  lockMember,
  upsertPushSubscription,
  type PushSubscriptionRow,
} from '../db/queries/push-subscriptions.ts'
import { conflict, notFound, type FieldError } from '../errors.ts'
import { newId } from '../ids.ts'
import { checkWebhookUrl, type UrlPolicy } from '../outbound/url-rules.ts'
import type { ApiDependencies } from './api.ts'
import { audit } from './audit.ts'
import type { Actor } from './route.ts'
import type { CreatePushSubscriptionSchema } from './schemas/push-subscription.ts'
import { canonicalUrl } from './subscription.ts'

/** More browsers than a person has; each costs one message per notification. */
const MAX_SUBSCRIPTIONS = 20

/** An uncompressed point of P-256: this mark and two coordinates of 32 bytes (RFC 8291, section 3.1). */
const POINT_BYTES = 65
const UNCOMPRESSED = 0x04

/** RFC 8291, section 3.2. */
const AUTH_BYTES = 16

/** What a schema cannot say of a push subscription; a value of the wrong type is the schema's to refuse. */
export function pushSubscriptionFieldErrors(
  fields: { readonly endpoint?: unknown; readonly keys?: unknown },
  urlPolicy: UrlPolicy,
): FieldError[] {
  const { endpoint, keys } = fields
  return [
    ...(typeof endpoint === 'string' ? endpointErrors(endpoint, urlPolicy) : []),
    ...(typeof keys === 'object' && keys !== null ? keyErrors(keys) : []),
  ]
}

function endpointErrors(endpoint: string, urlPolicy: UrlPolicy): FieldError[] {
  const checked = checkWebhookUrl(endpoint, urlPolicy)
  return checked.ok ? [] : [{ pointer: '/endpoint', code: checked.code, detail: checked.detail }]
}

function keyErrors({ p256dh, auth }: { readonly p256dh?: unknown; readonly auth?: unknown }): FieldError[] {
  const errors: FieldError[] = []
  if (typeof p256dh === 'string' && !isPublicKey(decodeBase64url(p256dh))) {
    const detail = 'must be an uncompressed point on P-256: 65 bytes as base64url'
    errors.push({ pointer: '/keys/p256dh', code: 'invalid_public_key', detail })
  }
  if (typeof auth === 'string' && decodeBase64url(auth)?.length !== AUTH_BYTES) {
    const detail = 'must be 16 bytes as base64url'
    errors.push({ pointer: '/keys/auth', code: 'invalid_auth_secret', detail })
  }
  return errors
}

/** Null for text that is not base64url, with its padding or without. */
function decodeBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url')
  // Made again and compared: base64 as Node reads it lets other characters and trailing bits pass.
  const plain = bytes.toString('base64url')
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, '=')
  return text === plain || text === padded ? bytes : null
}

/** A point off the curve would give secrets away, or make every message to this browser fail. */
function isPublicKey(bytes: Buffer | null): boolean {
  if (bytes?.length !== POINT_BYTES || bytes[0] !== UNCOMPRESSED) return false
  try {
    ECDH.convertKey(bytes, 'prime256v1')
    return true
  } catch {
    return false
  }
}

/**
 * Subscribes the caller's browser; one that is subscribed already gets its new keys under the same id.
 * Throws 409 where push is not set up, and to a member who has as many subscriptions as one may have.
 */
export async function subscribeToPush(
  { dataSource, urlPolicy, vapidPublicKey }: ApiDependencies,
  actor: Actor,
  body: Static<typeof CreatePushSubscriptionSchema>,
): Promise<{ subscription: PushSubscriptionRow; created: boolean }> {
  if (vapidPublicKey === null) throw conflict('push_not_configured', 'Push messages are not set up here.')
  const { organisationId, memberId } = actor.caller
  const id = newId()
  const endpoint = canonicalUrl(body.endpoint, urlPolicy)
  const [p256dh, auth] = [withoutPadding(body.keys.p256dh), withoutPadding(body.keys.auth)]
  const subscription = await dataSource.transaction(async (manager) => {
    if (!(await lockMember(manager, organisationId, memberId))) throw notFound('member')
    const saved = await upsertPushSubscription(
      manager,
      { id, organisationId, memberId, endpoint, p256dh, auth },
      MAX_SUBSCRIPTIONS,
    )
    if (saved !== null)
      await audit(manager, actor, {
        action: 'push_subscription.saved',
        // The rest of the URL is what allows to push.
        details: { id: saved.id, service: new URL(endpoint).host },
      })
    return saved
  })
  if (subscription === null) {
    const detail = `A member may have at most ${MAX_SUBSCRIPTIONS} push subscriptions. Remove one first.`
    throw conflict('too_many_subscriptions', detail)
  }
  return { subscription, created: subscription.id === id }
}

function withoutPadding(base64url: string): string {
  return base64url.replace(/=+$/, '')
}
