import type { ApiKeyRow } from '../../db/queries/api-keys.ts'
import type { MemberInput } from '../../db/queries/organisations.ts'

export function presentMember(member: MemberInput) {
  const { id, name, email, fullAccess, pushEnabled, permissions } = member
  return { id, name, email, fullAccess, pushEnabled, permissions }
}

/** A key without its value. */
export function presentApiKey(key: ApiKeyRow) {
  const { id, prefix, name, memberId } = key
  return {
    id,
    prefix,
    name,
    memberId,
    createdAt: key.createdAt.toISOString(),
    lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
    expiresAt: key.expiresAt?.toISOString() ?? null,
    revokedAt: key.revokedAt?.toISOString() ?? null,
  }
}
