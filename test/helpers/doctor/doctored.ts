import { randomUUID } from 'node:crypto'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { diagnose } from '../../../src/cli/doctor/diagnose.ts'
import type { Finding } from '../../../src/cli/doctor/check.ts'
import { TEST_KEY_RING } from '../database/factories.ts'
import { testServers } from '../runner/servers.ts'

/** What the servers of a test run have: no durability, and neither a worker nor a mail server. */
const OF_THE_TEST_RUN = [
  'database.fsync_off',
  'database.full_page_writes_off',
  'database.synchronous_commit_off',
  'temporal.worker_missing',
  'mail.not_configured',
]

/** The settings of an installation on the servers of the test run, with a task queue of its own. */
export function settingsOf(databaseUrl: string, env: Record<string, string> = {}): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: testServers().temporalAddress,
    TEMPORAL_TASK_QUEUE: `doctor-${randomUUID()}`,
    POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
    ...env,
  }
}

/** What `posthorn doctor` finds with these settings, apart from what is so in every test run. */
export type Examined = {
  status: string
  /** `error database.unreachable`, in the order of the output. */
  problems: string[]
  /** Names of the checks that could not run. */
  skipped: string[]
  find: (code: string) => Finding
}

export async function examine(env: Record<string, string>): Promise<Examined> {
  const { status, findings } = await diagnose(env)
  const own = findings.filter(({ code }) => !OF_THE_TEST_RUN.includes(code))
  const problems = own.filter(({ level }) => level === 'error' || level === 'warning')
  return {
    status,
    problems: problems.map(({ level, code }) => `${level} ${code}`),
    skipped: own.filter(({ level }) => level === 'skipped').map(({ code }) => code),
    find(code) {
      const found = findings.find((finding) => finding.code === code)
      if (found === undefined) throw new Error(`no ${code} in ${JSON.stringify(findings)}`)
      return found
    },
  }
}

type Host = { port: number; close(): Promise<void> }

/** A host that accepts connections and never answers. */
export function createSilentHost(): Promise<Host> {
  return createHost(() => undefined)
}

/** Answers each connection as PgBouncer in transaction mode answers the startup parameter `options`. */
export function createRefusingPooler(): Promise<Host> {
  const fields = ['SFATAL', 'C08P01', 'Munsupported startup parameter: options', '']
  const body = Buffer.from(fields.map((field) => `${field}\0`).join(''))
  const head = Buffer.alloc(5)
  head.write('E')
  head.writeInt32BE(body.length + 4, 1)
  return createHost((socket) => socket.once('data', () => socket.end(Buffer.concat([head, body]))))
}

/** A mail server that greets after a time, and takes every command. */
export function createSlowMailServer(greetsAfterMs: number): Promise<Host> {
  return createHost((socket) => {
    setTimeout(() => socket.write('220 mail.example ESMTP\r\n'), greetsAfterMs)
    socket.on('data', () => socket.write('250 OK\r\n'))
  })
}

async function createHost(greet: (socket: Socket) => void): Promise<Host> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    greet(socket)
  })
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}
