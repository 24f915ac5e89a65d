import { ECDH } from 'node:crypto'
import type { DataSource } from 'typeorm'
import type { Actor } from '../../domain/actor.ts'
import { recordAudit } from '../../db/queries/audit.ts'
import {
  deleteEndedPushSubscriptions,
  deletePushSubscriptions,
  lockMember,
  upsertPushSubscription,
  type PushSubscriptionRow,
} from '../../db/queries/push-subscriptions.ts'
import { lockCredentials } from '../../db/queries/sessions.ts'
import {
  conflict,
  notFound,
  unauthenticated,
  type FieldError,
  type ProblemError,
} from '../../problem-error.ts'
import { newId } from '../../ids.ts'
import { canonicalUrl, urlErrors, type UrlPolicy } from '../../outbound/url-rules.ts'

type Dependencies = { dataSource: DataSource }

/** More browsers than a member has; each costs one message per notification. */
const MAX_SUBSCRIPTIONS = 20

/**
 * Subscribes a browser of the calling member. It ends with the session in which it is made, signed out or replaced, and
 * with its API key. An endpoint that is subscribed already gets its new keys and owner, and keeps its id.
 * Throws 401 where the session or key ended meanwhile, 409 where push is not configured, and when the member has the
 * maximum number of subscriptions.
 */
export async function subscribeToPush(
  {
    dataSource,
    urlPolicy,
    vapidPublicKey,
  }: Dependencies & { urlPolicy: UrlPolicy; vapidPublicKey: string | null },
  actor: Actor,
  sessionHash: Buffer | null,
  requested: { endpoint: string; keys: { p256dh: string; auth: string } },
): Promise<{ subscription: PushSubscriptionRow; created: boolean }> {
  if (vapidPublicKey === null) throw conflict('push_not_configured', 'Push messages are not set up here.')
  const { organisationId, memberId, apiKeyId, keyHash } = actor
  const id = newId()
  const endpoint = canonicalUrl(requested.endpoint, urlPolicy)
  const p256dh = withoutPadding(requested.keys.p256dh)
  const auth = withoutPadding(requested.keys.auth)
  const subscription = await dataSource.transaction(async (manager) => {
    if (!(await lockMember(manager, organisationId, memberId))) throw notFound('member')
    if (!(await lockCredentials(manager, actor, sessionHash))) throw unauthenticated()
    await deleteEndedPushSubscriptions(manager, organisationId)
    const saved = await upsertPushSubscription(
      manager,
      { id, organisationId, memberId, endpoint, p256dh, auth, sessionHash, apiKeyId, keyHash },
      MAX_SUBSCRIPTIONS,
    )
    if (saved === null) throw tooManySubscriptions()
    // The rest of the URL is a credential: with it anyone can push.
    const details = { id: saved.id, service: new URL(endpoint).host }
    await recordAudit(manager, actor, { action: 'push_subscription.saved', details })
    return saved
  })
  return { subscription, created: subscription.id === id }
}

/** Removes one of the calling member's push subscriptions. Throws 404 when the member has none with this id. */
export async function unsubscribeFromPush(
  { dataSource }: Dependencies,
  actor: Actor,
  id: string,
): Promise<void> {
  const { organisationId, memberId } = actor
  await dataSource.transaction(async (manager) => {
    if ((await deletePushSubscriptions(manager, { organisationId, memberId, id })) === 0)
      throw notFound('push subscription')
    await recordAudit(manager, actor, { action: 'push_subscription.removed', details: { id } })
  })
}

/** Removes all push subscriptions of the calling member. */
export async function unsubscribeAllFromPush({ dataSource }: Dependencies, actor: Actor): Promise<void> {
  const { organisationId, memberId } = actor
  await dataSource.transaction(async (manager) => {
    const count = await deletePushSubscriptions(manager, { organisationId, memberId })
    if (count > 0)
      await recordAudit(manager, actor, { action: 'push_subscription.removed', details: { count } })
  })
}

function tooManySubscriptions(): ProblemError {
  const detail = `A member may have at most ${MAX_SUBSCRIPTIONS} push subscriptions. Remove one first.`
  return conflict('too_many_subscriptions', detail)
}

function withoutPadding(base64url: string): string {
  return base64url.replace(/=+$/, '')
}

/** An uncompressed point of P-256: a prefix and two coordinates of 32 bytes (RFC 8291, section 3.1). */
const POINT_BYTES = 65
const UNCOMPRESSED = 0x04

/** RFC 8291, section 3.2. */
const AUTH_BYTES = 16

/**
 * Checks rules of a push subscription that a schema cannot express. Values of the wrong type are left to the schema.
 */
export function pushSubscriptionFieldErrors(
  fields: { readonly endpoint?: unknown; readonly keys?: unknown },
  urlPolicy: UrlPolicy,
): FieldError[] {
  const { endpoint, keys } = fields
  return [
    ...(typeof endpoint === 'string' ? urlErrors('/endpoint', endpoint, urlPolicy) : []),
    ...(typeof keys === 'object' && keys !== null ? keyErrors(keys) : []),
  ]
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

/** Decodes base64url with or without padding; null for any other text. */
function decodeBase64url(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64url')
  // Encoded again and compared: Node's decoder accepts other characters and trailing bits.
  const plain = bytes.toString('base64url')
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, '=')
  return text === plain || text === padded ? bytes : null
}

/** Returns whether the bytes are a point on the curve; any other would leak secrets or make every message fail. */
function isPublicKey(bytes: Buffer | null): boolean {
  if (bytes?.length !== POINT_BYTES || bytes[0] !== UNCOMPRESSED) return false
  try {
    ECDH.convertKey(bytes, 'prime256v1')
    return true
  } catch {
    return false
  }
}
