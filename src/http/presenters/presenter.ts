import type { Static, TSchema } from 'typebox'
import { isObject } from '../../json-schema/count-checks.ts'
import { AuditEntrySchema, ApiKeySchema, MemberSchema } from '../schemas/organisation.ts'
import { EventKeyEntrySchema, EventSummarySchema } from '../schemas/event.ts'
import { PushSubscriptionSchema } from '../schemas/push-subscription.ts'
import { ReplayCountSchema, ReplaySchema } from '../schemas/replay.ts'
import { RetryJobSchema } from '../schemas/retry.ts'

/** What answers are made of: instants are dates or ISO 8601, and what the schema does not name is left out. */
type Row<Shown> = Shown extends string
  ? string extends Shown
    ? string | Date
    : Shown
  : Shown extends readonly (infer Item)[]
    ? readonly Row<Item>[]
    : Shown extends object
      ? string extends keyof Shown
        ? object
        : { readonly [Name in keyof Shown]: Row<Shown[Name]> }
      : Shown

/** Returns a function that presents of a row what the schema documents, in its order, and nothing else. */
export function presenter<Schema extends TSchema>(
  schema: Schema,
): (row: Row<Static<Schema>>) => Static<Schema> {
  return compile(schema) as (row: unknown) => Static<Schema>
}

function compile(schema: object): (value: unknown) => unknown {
  const { properties, items, anyOf } = schema as Record<string, unknown>
  if (Array.isArray(anyOf)) {
    const present = compile(anyOf[0] as object)
    return (value) => (value === null ? null : present(value))
  }
  if (isObject(items)) {
    const present = compile(items)
    return (value) => (value as unknown[]).map(present)
  }
  const fields = Object.entries((properties ?? {}) as Record<string, object>).map(
    ([name, field]) => [name, compile(field)] as const,
  )
  if (fields.length === 0) return (value) => (value instanceof Date ? value.toISOString() : value)
  return (value) => {
    const row = value as Record<string, unknown>
    return Object.fromEntries(fields.map(([name, present]) => [name, present(row[name])]))
  }
}

/**
 * Returns the JSON text of an object with the members of `before`, then `name` with the text `json` byte for byte, then
 * the members of `after`. `before` has at least one member.
 */
export function embedJson(before: object, name: string, json: string, after: object = {}): string {
  const head = JSON.stringify(before).slice(0, -1)
  const tail = JSON.stringify(after).slice(1)
  return `${head},${JSON.stringify(name)}:${json}${tail === '}' ? '' : ','}${tail}`
}

// Rows that every reader sees as they are, without what their schemas do not name: a key without its value, a push
// subscription without its keys.
export const presentApiKey = presenter(ApiKeySchema)
export const presentAuditEntry = presenter(AuditEntrySchema)
export const presentEventKey = presenter(EventKeyEntrySchema)
export const presentEventSummary = presenter(EventSummarySchema)
export const presentMember = presenter(MemberSchema)
export const presentPushSubscription = presenter(PushSubscriptionSchema)
export const presentReplay = presenter(ReplaySchema)
export const presentReplayCount = presenter(ReplayCountSchema)
export const presentRetryJob = presenter(RetryJobSchema)
