import type { DataSource } from 'typeorm'
import { createApiKey, revokeKey } from '../accounts/api-keys.ts'
import { findMissing, listApiKeys, type ApiKeyChoice, type ApiKeyRow } from '../db/queries/api-keys.ts'
import type { Output } from './command-line/command.ts'
import { presentApiKey } from '../http/presenters/presenter.ts'
import { commandLineActor } from './with-database.ts'
import { visibleText } from '../process/visible-text.ts'

export type ApiKeyCommand =
  | { kind: 'create'; organisationId: string; memberId: string; name: string; expiresAt: Date | null }
  | { kind: 'list'; organisationId: string; memberId: string | null; json: boolean }
  | { kind: 'revoke'; organisationId: string; choice: ApiKeyChoice }

type Wanted<Kind extends ApiKeyCommand['kind']> = Extract<ApiKeyCommand, { kind: Kind }>

/** Runs one `posthorn api-key` command. Throws an error with a readable message when it is impossible. */
export function runApiKeyCommand(db: DataSource, wanted: ApiKeyCommand, output: Output): Promise<void> {
  switch (wanted.kind) {
    case 'create':
      return create(db, wanted, output)
    case 'list':
      return listKeys(db, wanted, output)
    case 'revoke':
      return revoke(db, wanted, output)
  }
}

/** Creates a key and prints it, once. */
async function create(db: DataSource, wanted: Wanted<'create'>, output: Output): Promise<void> {
  const { organisationId, memberId, name, expiresAt } = wanted
  await assertKnown(db, organisationId, memberId)
  const actor = commandLineActor(organisationId)
  const made = await db.transaction((manager) => createApiKey(manager, actor, { memberId, name, expiresAt }))
  if (made === null)
    throw new Error(
      `The member "${memberId}" has an API key "${visibleText(name)}" already. Revoke it first, or take another name.`,
    )
  const until = expiresAt === null ? 'It does not expire' : `It expires at ${expiresAt.toISOString()}`
  output.note(
    `New API key "${visibleText(name)}" of "${memberId}" in "${organisationId}", id ${made.id}, shown only now.`,
  )
  output.note(`${until}.`)
  output.print(made.key)
}

async function listKeys(db: DataSource, wanted: Wanted<'list'>, output: Output): Promise<void> {
  const { organisationId, memberId, json } = wanted
  await assertKnown(db, organisationId, memberId)
  const keys = await listApiKeys(db, organisationId, memberId)
  if (json) output.print(JSON.stringify(keys.map(presentApiKey), null, 2))
  else if (keys.length === 0) output.note('There are no API keys.')
  else output.print(describeKeys(keys))
}

async function revoke(db: DataSource, wanted: Wanted<'revoke'>, output: Output): Promise<void> {
  const { organisationId, choice } = wanted
  const revoked = await revokeKey({ dataSource: db }, commandLineActor(organisationId), choice)
  if (revoked === null) {
    await assertKnown(db, organisationId, 'id' in choice ? null : choice.memberId)
    throw new Error(`There is no API key ${inWords(choice)} in the organisation "${organisationId}".`)
  }
  output.print(
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
  return `The API key ${prefix}… "${visibleText(name)}" of "${memberId}"`
}

const COLUMNS: readonly [title: string, cell: (key: ApiKeyRow) => string][] = [
  ['ID', ({ id }) => id],
  ['PREFIX', ({ prefix }) => `${prefix}…`],
  ['NAME', ({ name }) => name],
  ['MEMBER', ({ memberId }) => memberId],
  ['CREATED', ({ createdAt }) => inSeconds(createdAt)],
  ['LAST USED', ({ lastUsedAt }) => inSeconds(lastUsedAt)],
  ['EXPIRES', ({ expiresAt }) => inSeconds(expiresAt)],
  ['REVOKED', ({ revokedAt }) => inSeconds(revokedAt)],
]

/** Returns the keys as a table, one line each. */
function describeKeys(keys: readonly ApiKeyRow[]): string {
  const lines = [
    COLUMNS.map(([title]) => title),
    ...keys.map((key) => COLUMNS.map(([, cell]) => visibleText(cell(key)))),
  ]
  const widths = COLUMNS.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines
    .map((cells) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '))
    .map((line) => line.trimEnd())
    .join('\n')
}

function inSeconds(time: Date | null): string {
  return time === null ? '-' : time.toISOString().replace(/\.\d+Z$/, 'Z')
}
