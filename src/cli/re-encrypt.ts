import type { DataSource } from 'typeorm'
import {
  countByKey,
  listSecretsNotUnder,
  replaceSealedSecret,
  type SealedSecret,
} from '../db/queries/webhooks.ts'
import { loadConfig } from '../config/load.ts'
import { createSecretBox, type SecretBox } from '../secret-box.ts'
import { keyRingProblems } from '../process/start-checks.ts'
import { describeError } from '../process/visible-text.ts'
import type { Arguments, Output } from './command-line/command.ts'
import { withDatabase } from './with-database.ts'

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

/**
 * What became of it. `left`: secrets that are still not under the newest key, by key; null is a text that names none.
 */
export type ReEncryption = {
  changed: number
  unopened: { webhookId: string; reason: string }[]
  left: { keyId: string | null; count: number }[]
}

const BATCH = 200
const BEFORE_ALL_IDS = '00000000-0000-0000-0000-000000000000'

/**
 * Seals every signing secret that is not under the ring's newest key anew with it. Each is a statement of its own that
 * asks for the text it read: a webhook deleted or sealed anew meanwhile is left alone, no lock outlives a statement,
 * and an interrupted or repeated run continues where others ended. Secrets that do not open are skipped.
 * Throws, before anything is changed, when the newest key is not the one that secrets under its name were sealed with.
 */
export async function reEncrypt(dataSource: DataSource, secretBox: SecretBox): Promise<ReEncryption> {
  await assertNewestKey(dataSource, secretBox)
  const keyId = secretBox.newestKeyId
  const unopened: ReEncryption['unopened'] = []
  let changed = 0
  let after = BEFORE_ALL_IDS
  for (;;) {
    const batch = await listSecretsNotUnder(dataSource, { keyId, after, limit: BATCH })
    for (const { webhookId, secret } of batch) {
      const sealed = sealAnew(secretBox, { webhookId, secret })
      if ('reason' in sealed) unopened.push({ webhookId, reason: sealed.reason })
      else if (await replaceSealedSecret(dataSource, webhookId, secret, sealed.text)) changed++
    }
    const last = batch.at(-1)
    if (last === undefined) break
    after = last.webhookId
  }
  const counts = await countByKey(dataSource)
  return { changed, unopened, left: counts.filter((entry) => entry.keyId !== keyId) }
}

function sealAnew(
  secretBox: SecretBox,
  { webhookId, secret }: SealedSecret,
): { text: string } | { reason: string } {
  try {
    return { text: secretBox.seal(webhookId, secretBox.open(webhookId, secret)) }
  } catch (error) {
    return { reason: describeError(error) }
  }
}

/** Under a newest key that only this process has, the others could open nothing any more. */
async function assertNewestKey(dataSource: DataSource, secretBox: SecretBox): Promise<void> {
  const keyId = secretBox.newestKeyId
  if (!(await keyRingProblems(dataSource, secretBox)).has(keyId)) return
  throw new Error(
    `The newest key of POSTHORN_ENCRYPTION_KEYS, "${keyId}", is not the one that secrets of this database are under by that name. Nothing was changed.`,
  )
}

/** Describes the outcome: `lines` for standard output, `problems` for standard error. */
export function describeReEncryption(
  { changed, unopened, left }: ReEncryption,
  newestKeyId: string,
): { lines: string[]; problems: string[] } {
  const lines = [`Re-encrypted with key "${newestKeyId}": ${changed}`]
  if (left.length === 0) lines.push('Left under other keys: none')
  for (const { keyId, count } of left)
    lines.push(keyId === null ? `Left that name no key: ${count}` : `Left under key "${keyId}": ${count}`)
  const problems = unopened.map(
    ({ webhookId, reason }) => `The signing secret of webhook ${webhookId} does not open: ${reason}`,
  )
  const leftCount = left.reduce((sum, { count }) => sum + count, 0)
  if (leftCount > unopened.length)
    problems.push(
      'Secrets came in under another key meanwhile: a process still seals with it. Restart it with this key ring, and run this again.',
    )
  return { lines, problems }
}
