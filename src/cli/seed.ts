import type { EntityManager } from 'typeorm'
import { hashCredential } from '../credentials.ts'
import { apiKeyPrefix, auditApiKey, generateApiKey } from '../accounts/api-keys.ts'
import { saveMember, saveOrganisation } from '../accounts/organisations.ts'
import { ConfigError, loadConfig } from '../config/load.ts'
import { hasApiKey, upsertApiKey } from '../db/queries/organisations.ts'
import type { Pooler } from '../db/connection/session-limits.ts'
import { newId } from '../ids.ts'
import { visibleText } from '../process/visible-text.ts'
import type { Arguments, Output } from './command-line/command.ts'
import { commandLineActor, withDatabase } from './with-database.ts'
import { readSeedFile, type Seed } from './seed-file.ts'

/** A key that was made by this run: the only time it can be seen. */
export type NewKey = { organisationId: string; memberId: string; name: string; key: string }

/** `posthorn seed`. */
export async function runSeed({ operand: file }: Arguments, { print }: Output): Promise<number> {
  const { databaseUrl, databasePooler } = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  const { summary, newKeys } = await seedFromFile(databaseUrl, file, { pooler: databasePooler })
  for (const { memberId, name, key } of newKeys)
    print(`New API key "${visibleText(name)}" of ${memberId}, shown only now: ${key}`)
  print(summary)
  return 0
}

/**
 * Brings the file's organisations, members and keys into the database, all or nothing. Repeating it changes nothing.
 */
export async function seedFromFile(
  databaseUrl: string,
  file: string,
  { pooler = 'none', isDemo = false }: { pooler?: Pooler; isDemo?: boolean } = {},
): Promise<{ summary: string; newKeys: NewKey[] }> {
  const seed = await readSeedFile(file, { isDemo })
  const newKeys = await withDatabase({ databaseUrl, databasePooler: pooler }, (dataSource) =>
    dataSource.transaction((manager) => apply(manager, seed)),
  )
  const members = seed.organisations.reduce(
    (sum, organisation) => sum + (organisation.members?.length ?? 0),
    0,
  )
  return {
    summary: `Seeded ${seed.organisations.length} organisation(s) with ${members} member(s).`,
    newKeys,
  }
}

async function apply(manager: EntityManager, seed: Seed): Promise<NewKey[]> {
  const newKeys: NewKey[] = []
  for (const { members = [], ...organisation } of seed.organisations) {
    const { id } = organisation
    const actor = commandLineActor(id, 'seed')
    await saveOrganisation(manager, actor, organisation)
    for (const { apiKeys = [], ...member } of members) {
      await saveMember(manager, actor, member)
      for (const { name, key } of apiKeys) {
        const made = await bringKey(manager, { organisationId: id, memberId: member.id, name, key })
        if (made !== null) newKeys.push(made)
      }
    }
  }
  return newKeys
}

/** Writes a given key; makes one where none is given and none of that name exists. */
async function bringKey(
  manager: EntityManager,
  wanted: Omit<NewKey, 'key'> & { key: string | undefined },
): Promise<NewKey | null> {
  const { organisationId, memberId, name } = wanted
  if (wanted.key === undefined && (await hasApiKey(manager, organisationId, memberId, name))) return null
  const key = wanted.key ?? generateApiKey()
  const stored = { id: newId(), name, prefix: apiKeyPrefix(key), hash: hashCredential(key) }
  try {
    const written = await upsertApiKey(manager, organisationId, memberId, stored)
    if (written !== null)
      await auditApiKey(manager, commandLineActor(organisationId, 'seed'), written, { memberId, ...stored })
  } catch (error) {
    if (!isKeyTaken(error)) throw error
    throw new ConfigError([`the key "${name}" of ${memberId} in ${organisationId} exists under another name`])
  }
  return wanted.key === undefined ? { organisationId, memberId, name, key } : null
}

/** True when the very key is in the database already, as another key of this member or of another. */
function isKeyTaken(error: unknown): boolean {
  return error instanceof Error && 'constraint' in error && error.constraint === 'api_key_hash_idx'
}
