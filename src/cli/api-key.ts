import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import {
  findMissing,
  insertApiKey,
  listApiKeys,
  revokeApiKey,
  type ApiKeyChoice,
  type ApiKeyRow,
} from '../db/queries/api-key-admin.ts'
import { hashApiKey } from '../db/queries/api-keys.ts'
import { recordAudit } from '../db/queries/audit.ts'
import { CALLER_MAX_AGE_MS } from '../http/caller-lookup.ts'
import { newId } from '../ids.ts'
import type { ApiKeyCommand } from './api-key-arguments.ts'
import { describeKeys, presentKey } from './api-key-list.ts'
import { apiKeyPrefix, generateApiKey } from './api-key-value.ts'
import { operatorOf } from './operator.ts'

/** `out` is for a script to read, `note` for the person who watches. */
export type Say = { out(text: string): void; note(text: string): void }

type Wanted<Kind extends ApiKeyCommand['kind']> = Extract<ApiKeyCommand, { kind: Kind }>

/** Does what `posthorn api-key` was asked for. Throws, in words, what cannot be done. */
export function runApiKeyCommand(
  db: DataSource,
  wanted: Exclude<ApiKeyCommand, { kind: 'help' }>,
  say: Say,
): Promise<void> {
  switch (wanted.kind) {
    case 'create':
      return createApiKey(db, wanted, say)
    case 'list':
      return listKeys(db, wanted, say)
    case 'revoke':
      return revokeKey(db, wanted, say)
  }
}

/** Makes a key and says it, the only time it can be seen. */
async function createApiKey(db: DataSource, wanted: Wanted<'create'>, say: Say): Promise<void> {
  const { organisationId, memberId, name, expiresAt } = wanted
  await assertKnown(db, organisationId, memberId)
  const key = generateApiKey()
  const stored = { id: newId(), prefix: apiKeyPrefix(key), hash: hashApiKey(key) }
  const made = await db.transaction(async (manager) => {
    if (!(await insertApiKey(manager, { ...stored, organisationId, memberId, name, expiresAt }))) return false
    const details = { id: stored.id, memberId, name, expiresAt }
    await recordAudit(manager, operatorOf(organisationId), { action: 'api_key.created', details })
    return true
  })
  if (!made)
    throw new Error(
      `The member "${memberId}" has an API key "${name}" already. Revoke it first, or take another name.`,
    )
  const until = expiresAt === null ? 'It does not expire' : `It expires at ${expiresAt.toISOString()}`
  say.note(`New API key "${name}" of "${memberId}" in "${organisationId}", id ${stored.id}, shown only now.`)
  say.note(`${until}.`)
  say.out(key)
}

async function listKeys(db: DataSource, wanted: Wanted<'list'>, say: Say): Promise<void> {
  const { organisationId, memberId, json } = wanted
  await assertKnown(db, organisationId, memberId)
  const keys = await listApiKeys(db, organisationId, memberId)
  if (json) say.out(JSON.stringify(keys.map(presentKey), null, 2))
  else if (keys.length === 0) say.note('There are no API keys.')
  else say.out(describeKeys(keys))
}

async function revokeKey(db: DataSource, wanted: Wanted<'revoke'>, say: Say): Promise<void> {
  const { organisationId, choice } = wanted
  const revoked = await db.transaction(async (manager) => {
    const done = await revokeApiKey(manager, organisationId, choice)
    if (done === null || done.before) return done
    const { id, memberId, name } = done.key
    const details = { id, memberId, name }
    await recordAudit(manager, operatorOf(organisationId), { action: 'api_key.revoked', details })
    return done
  })
  if (revoked === null) {
    await assertKnown(db, organisationId, 'id' in choice ? null : choice.memberId)
    throw new Error(`There is no API key ${inWords(choice)} in the organisation "${organisationId}".`)
  }
  // Processes that answer requests believe what they have just looked up: when this command returns, none does any more.
  if (!revoked.before) await delay(CALLER_MAX_AGE_MS)
  say.out(
    revoked.before
      ? `${named(revoked.key)} was revoked before, at ${String(revoked.key.revokedAt?.toISOString())}.`
      : `${named(revoked.key)} is revoked.`,
  )
}

async function assertKnown(db: DataSource, organisationId: string, memberId: string | null): Promise<void> {
  const missing = await findMissing(db, organisationId, memberId)
  if (missing === 'organisation') throw new Error(`There is no organisation "${organisationId}".`)
  if (missing === 'member')
    throw new Error(`There is no member "${String(memberId)}" in the organisation "${organisationId}".`)
}

function inWords(choice: ApiKeyChoice): string {
  return 'id' in choice ? `with the id ${choice.id}` : `"${choice.name}" of the member "${choice.memberId}"`
}

function named({ prefix, name, memberId }: ApiKeyRow): string {
  return `The API key ${prefix}… "${name}" of "${memberId}"`
}
