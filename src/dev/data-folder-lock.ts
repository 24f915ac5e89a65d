import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'

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
