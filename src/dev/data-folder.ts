import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
  type Dirent,
} from 'node:fs'
import { dirname, join } from 'node:path'
import webPush from 'web-push'
import { OPERATOR_SCOPES } from '../domain/permissions.ts'

/** Nothing that `npm start` creates is for other users of the machine: keys, payloads, logs, mails. */
export const OWNER_ONLY_UMASK = 0o077

const OWNER_ONLY_FOLDER = 0o700
const OWNER_ONLY_FILE = 0o600

/** For root, whose PostgreSQL runs as another user: it may pass through, and list nothing. */
const PASSABLE_FOLDER = 0o711

/** PostgreSQL keeps its own rights there, and refuses others. */
const POSTGRES_FOLDER = 'postgres'

/**
 * Creates the data folder if it is missing, and takes the rights of other users to it away. Throws when it cannot be
 * written.
 */
export function prepareDataFolder(dataDir: string): void {
  try {
    // Step by step: a recursive mkdir never ends where a parent exists but takes no folder.
    if (!existsSync(dirname(dataDir))) mkdirSync(dirname(dataDir), { recursive: true })
    if (!existsSync(dataDir)) mkdirSync(dataDir)
    mkdirSync(join(dataDir, 'logs'), { recursive: true })
    accessSync(dataDir, constants.W_OK)
    chmodSync(dataDir, process.getuid?.() === 0 ? PASSABLE_FOLDER : OWNER_ONLY_FOLDER)
    for (const entry of readdirSync(dataDir, { withFileTypes: true }))
      if (entry.name !== POSTGRES_FOLDER) restrict(dataDir, entry)
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new Error(`The data folder ${dataDir} cannot be used (${reason}). Set POSTHORN_DATA to another.`, {
      cause: error,
    })
  }
}

/** An installation from before had the rights that the umask of its user left. Links are not followed. */
function restrict(folder: string, entry: Dirent): void {
  const path = join(folder, entry.name)
  if (entry.isFile()) chmodSync(path, OWNER_ONLY_FILE)
  if (!entry.isDirectory()) return
  chmodSync(path, OWNER_ONLY_FOLDER)
  for (const inner of readdirSync(path, { withFileTypes: true })) restrict(path, inner)
}

/** Key ring of a development instance: created once and stored in its data folder, readable by its owner only. */
export function developmentKeyRing(dataDir: string): string {
  return madeOnce(join(dataDir, 'encryption-keys'), {
    what: 'a key ring',
    pattern: /^[A-Za-z0-9_-]+:[0-9a-f]{64}$/,
    wayOut: 'remove the data folder',
    // An id of its own: another ring made by accident does not pass for this one.
    make: () => `dev-${randomBytes(4).toString('hex')}:${randomBytes(32).toString('hex')}`,
  })
}

const EVERY_SCOPE = OPERATOR_SCOPES.join('+')

/** Returns the operator key of a development instance, created once: name, secret, and every scope that there is. */
export function developmentOperatorKey(dataDir: string): string {
  const key = madeOnce(join(dataDir, 'operator-key'), {
    what: 'an operator key',
    pattern: /^dev:[A-Za-z0-9_-]{46}:[a-z+]+$/,
    wayOut: 'remove the file to get another key',
    make: () => `dev:op_${randomBytes(32).toString('base64url')}:${EVERY_SCOPE}`,
  })
  return key.replace(/[a-z+]+$/, EVERY_SCOPE)
}

/** Returns the VAPID key of a development instance, created once: browsers subscribe with it. */
export function developmentVapidKey(dataDir: string): string {
  return madeOnce(join(dataDir, 'vapid-private-key'), {
    what: 'a VAPID key',
    pattern: /^[A-Za-z0-9_-]{43}$/,
    wayOut: 'remove the file to get another key',
    make: () => webPush.generateVAPIDKeys().privateKey,
  })
}

function madeOnce(
  file: string,
  { what, pattern, wayOut, make }: { what: string; pattern: RegExp; wayOut: string; make: () => string },
): string {
  if (!existsSync(file)) keepInFile(file, `${make()}\n`)
  const text = readFileSync(file, 'utf8').trim()
  if (pattern.test(text)) return text
  throw new Error(`${file} no longer contains ${what}. Restore it, or ${wayOut}.`)
}

/** Port that the demo receiver had before, so that the webhooks made then still reach it; 0 the first time. */
export function rememberedPort(dataDir: string): number {
  const file = join(dataDir, 'receiver-port')
  return existsSync(file) ? Number(readFileSync(file, 'utf8')) || 0 : 0
}

export function rememberPort(dataDir: string, port: number): void {
  keepInFile(join(dataDir, 'receiver-port'), String(port))
}

/** Writes a temporary file and renames it, so that an interrupted start leaves no incomplete file. */
export function keepInFile(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
