import { randomBytes, randomUUID } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import webPush from 'web-push'
import { OPERATOR_SCOPES } from '../domain/permissions.ts'

/** Nothing that `npm start` creates is for other users of the machine: keys, payloads, logs, mails. */
export const OWNER_ONLY_UMASK = 0o077

const OWNER_ONLY = 0o700

/** For root, whose PostgreSQL runs as another user: it may pass through, and list nothing. */
const PASSABLE = 0o011

/**
 * Creates the data folder if it is missing; one that is there keeps its rights. Throws when it cannot be written.
 */
export function prepareDataFolder(dataDir: string): void {
  try {
    // Step by step: a recursive mkdir never ends where a parent exists but takes no folder.
    if (!existsSync(dirname(dataDir))) mkdirSync(dirname(dataDir), { recursive: true })
    if (!existsSync(dataDir)) mkdirSync(dataDir, OWNER_ONLY)
    mkdirSync(join(dataDir, 'logs'), { recursive: true, mode: OWNER_ONLY })
    accessSync(dataDir, constants.W_OK)
    if (process.getuid?.() === 0) chmodSync(dataDir, statSync(dataDir).mode | PASSABLE)
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : String(error)
    throw new Error(`The data folder ${dataDir} cannot be used (${reason}). Set POSTHORN_DATA to another.`, {
      cause: error,
    })
  }
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

/** Who holds a data folder: it sends `token` to each connection on `port` of loopback, until it ends for any reason. */
type Holder = { pid: number; port: number; token: string; apiUrl: string }

export type DataFolderLock = { release(): Promise<void> }

const LOOPBACK = '127.0.0.1'

/** The answer comes at once, unless the process is stopped or very busy. */
const ANSWER_TIMEOUT_MS = 1_000

/**
 * Locks a data folder for this process, whose API is at `apiUrl`. The lock is a port that this process listens on, so it
 * ends with the process, also by `kill -9`: a file that was left over blocks no process, whichever has its pid or port now.
 *
 * @throws Error with the address of the process that holds it
 */
export async function lockDataFolder(dataDir: string, apiUrl: string): Promise<DataFolderLock> {
  const file = join(dataDir, 'running.json')
  const token = randomUUID()
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end(token)
  })
  // Something else keeps the process running.
  server.unref().listen(0, LOOPBACK)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const holder: Holder = { pid: process.pid, port, token, apiUrl }
  try {
    // Two that start in the same millisecond after a crash may both pass; PostgreSQL then refuses one of them.
    while (!writeNew(file, JSON.stringify(holder))) await assertReleased(file, dataDir)
  } catch (error) {
    server.close()
    throw error
  }
  return {
    async release() {
      if (readHolder(file)?.token === token) rmSync(file, { force: true })
      server.close()
      await once(server, 'close')
    },
  }
}

/** Removes the file of a process that has ended. */
async function assertReleased(file: string, dataDir: string): Promise<void> {
  const holder = readHolder(file)
  if (holder !== null && (await isHeld(holder)))
    throw new Error(
      `Posthorn is already running on the data folder ${dataDir}, at ${holder.apiUrl} (process ${holder.pid}). ` +
        'Stop it with Ctrl-C where it was started, or set POSTHORN_DATA to another folder.',
    )
  rmSync(file, { force: true })
}

/** Returns false where the file exists. */
function writeNew(file: string, text: string): boolean {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Returns null where the file is gone, or was written in part by a process that was killed. */
function readHolder(file: string): Holder | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder
  } catch {
    return null
  }
}

function isHeld({ pid, port, token }: Holder): Promise<boolean> {
  return new Promise((resolve) => {
    let received = ''
    const socket = connect({ host: LOOPBACK, port })
    const end = (held: boolean): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(held)
    }
    const timer = setTimeout(() => end(isAlive(pid)), ANSWER_TIMEOUT_MS)
    socket.setEncoding('utf8')
    socket.on('error', () => end(false))
    socket.on('end', () => end(received === token))
    socket.on('data', (text: string) => {
      received += text
      if (!token.startsWith(received)) end(false)
    })
  })
}

/** Whether a process is there, ours or not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // Not ours to signal, but there.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
