import type { PlayedWebhook, PlayRecord, UserAction } from './record.ts'

/** What a webhook certainly was during some time; null where a change, or one whose answer was lost, may have changed it. */
type Certain = {
  isThere: boolean | null
  enabled: boolean | null
  keys: readonly string[] | null
  urlVersion: number | null
}

/**
 * Returns what a webhook was for all of the time from `from` to `to`. Its changes came one after the other; one that was
 * not confirmed may take effect until a later one is.
 */
export function certainlyWas(record: PlayRecord, webhook: PlayedWebhook, from: number, to: number): Certain {
  const certain: Certain = {
    isThere: true,
    enabled: true,
    keys: webhook.subscribedEventKeys,
    urlVersion: 0,
  }
  for (const action of record.actions) {
    if (action.from > to || !concerns(action, webhook)) continue
    const { enabled, subscribedEventKeys, urlVersion, isDeleted } = effectOf(action)
    const isSure = isDone(action) && action.to < from
    if (isDeleted !== undefined) certain.isThere = isSure ? false : orNull(certain.isThere, false)
    if (enabled !== undefined) certain.enabled = isSure ? enabled : orNull(certain.enabled, enabled)
    if (subscribedEventKeys !== undefined)
      certain.keys =
        isSure || String(certain.keys) === String(subscribedEventKeys) ? subscribedEventKeys : null
    if (urlVersion !== undefined)
      certain.urlVersion = isSure ? urlVersion : orNull(certain.urlVersion, urlVersion)
  }
  return certain
}

/** Whether it certainly takes events of this key for all of that time; null where that is not known. */
export function certainlyTakes(
  record: PlayRecord,
  webhook: PlayedWebhook,
  eventKey: string,
  from: number,
  to: number,
): boolean | null {
  const { isThere, enabled, keys } = certainlyWas(record, webhook, from, to)
  const isSubscribed = keys === null ? null : keys.includes('*') || keys.includes(eventKey)
  if (isThere === false || enabled === false || isSubscribed === false) return false
  return isThere === null || enabled === null || isSubscribed === null ? null : true
}

function orNull<T>(one: T | null, other: T): T | null {
  return one === other ? one : null
}

function concerns({ kind, webhookId, organisationId }: UserAction, webhook: PlayedWebhook): boolean {
  if (kind === 'erase') return organisationId === webhook.organisationId
  return (kind === 'change' || kind === 'create') && webhookId === webhook.id
}

/** What it leaves of a webhook that it concerns; nothing where it changes none. */
export function effectOf({ kind, change }: UserAction): NonNullable<UserAction['change']> {
  if (kind === 'erase') return { isDeleted: true }
  return change ?? {}
}

/** It took effect. What was created was there at the latest by the answer. */
function isDone({ status }: UserAction): boolean {
  return status >= 200 && status < 300
}

/** Whether it was created during the play after that time. */
export function isCreatedAfter({ actions }: PlayRecord, { id }: PlayedWebhook, instant: number): boolean {
  return actions.some(({ kind, webhookId, to }) => kind === 'create' && webhookId === id && to > instant)
}
