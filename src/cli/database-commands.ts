import { loadConfig } from '../config/load.ts'
import { createSecretBox } from '../secret-box.ts'
import type { Arguments, Output } from './command-line/command.ts'
import { migrate } from './migrate.ts'
import { describeReEncryption, reEncrypt } from './re-encrypt.ts'
import { seedFromFile } from './seed.ts'
import { visibleText } from '../process/visible-text.ts'
import { withDatabase } from './with-database.ts'

/** `posthorn migrate`. */
export async function runMigrate(_args: Arguments, { print }: Output): Promise<number> {
  const { databaseUrl, databasePooler } = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  const applied = await migrate(databaseUrl, databasePooler)
  print(applied.length === 0 ? 'The database is up to date.' : `Applied: ${applied.join(', ')}`)
  return 0
}

/** `posthorn seed`. */
export async function runSeed({ operand: file }: Arguments, { print }: Output): Promise<number> {
  const { databaseUrl, databasePooler } = loadConfig(process.env, ['databaseUrl', 'databasePooler'])
  const { summary, newKeys } = await seedFromFile(databaseUrl, file, { pooler: databasePooler })
  for (const { memberId, name, key } of newKeys)
    print(`New API key "${visibleText(name)}" of ${memberId}, shown only now: ${key}`)
  print(summary)
  return 0
}

/** `posthorn re-encrypt`. */
export async function runReEncrypt(_args: Arguments, { print, note }: Output): Promise<number> {
  const config = loadConfig(process.env, ['databaseUrl', 'databasePooler', 'encryptionKeys'])
  const secretBox = createSecretBox(config.encryptionKeys)
  const outcome = await withDatabase(config, (db) => reEncrypt(db, secretBox))
  const { lines, problems } = describeReEncryption(outcome, secretBox.newestKeyId)
  for (const line of lines) print(line)
  for (const problem of problems) note(problem)
  // As long as another key is in use, no script may go on to take it out of the ring.
  return outcome.left.length > 0 ? 1 : 0
}
