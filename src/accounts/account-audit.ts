import type { EntityManager } from 'typeorm'
import { recordAudit, type AuditActor } from '../db/queries/audit.ts'
import type { MemberInput, OrganisationInput, WrittenApiKey } from '../db/queries/organisations.ts'

/** Records that `actor` created or changed an organisation, or a member or its rights; nothing when it is as it was. */
export async function auditAccount<Input extends OrganisationInput | MemberInput>(
  manager: EntityManager,
  actor: AuditActor,
  what: 'organisation' | 'member',
  before: Input | null,
  after: Input,
): Promise<void> {
  const change = changeOf(before, after)
  if (change === null) return
  const action = before === null ? (`${what}.created` as const) : (`${what}.updated` as const)
  await recordAudit(manager, actor, { action, details: { id: after.id, ...change } })
}

/** Records that `actor` created a key, or replaced its value. Of a value it shows the public prefix. */
export async function auditApiKey(
  manager: EntityManager,
  actor: AuditActor,
  { id, prefixBefore }: WrittenApiKey,
  key: { memberId: string; name: string; prefix: string },
): Promise<void> {
  const { memberId, name, prefix } = key
  const before = prefixBefore === null ? null : { prefix: prefixBefore }
  await recordAudit(manager, actor, {
    action: before === null ? 'api_key.created' : 'api_key.replaced',
    details: { id, memberId, name, before, after: { prefix } },
  })
}

/** The fields that differ, as they were and as they are; all of them where there was nothing before. Null: none. */
function changeOf<T extends object>(
  before: T | null,
  after: T,
): { before: Partial<T> | null; after: Partial<T> } | null {
  if (before === null) return { before, after }
  const changed = (Object.keys(after) as (keyof T)[]).filter(
    (field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )
  if (changed.length === 0) return null
  const only = (of: T) => Object.fromEntries(changed.map((field) => [field, of[field]])) as Partial<T>
  return { before: only(before), after: only(after) }
}
