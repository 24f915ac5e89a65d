import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../src/free-port.ts'
import { eventually } from '../../helpers/eventually.ts'

const PGBOUNCER = '/usr/sbin/pgbouncer'

export const isPgBouncerInstalled = existsSync(PGBOUNCER)

/** PgBouncer before one server. */
export type PgBouncer = { urlOf(databaseUrl: string): string; log(): string; stop(): Promise<void> }

/** `poolSize`: its connections to each database; `ignored`: startup parameters that it drops. */
export async function startPgBouncer(
  databaseUrl: string,
  { poolSize, mode = 'transaction', ignored = '' }: { poolSize: number; mode?: string; ignored?: string },
): Promise<PgBouncer> {
  const { hostname, port, username, password } = new URL(databaseUrl)
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-pgbouncer-'))
  // It refuses to run as root, and has to read its file.
  chmodSync(folder, 0o755)
  const listenPort = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = ${ignored}
default_pool_size = ${poolSize}
max_client_conn = 500
`,
  )
  const asNobody = ['--reuid=nobody', '--regid=nogroup', '--clear-groups', PGBOUNCER]
  const [command = '', ...args] = process.getuid?.() === 0 ? ['setpriv', ...asNobody] : [PGBOUNCER]
  const child = spawn(command, [...args, file], { stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  for (const output of [child.stdout, child.stderr])
    output.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const exited = once(child, 'exit')
  await eventually(async () => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended:\n${log}`)
    const socket = connect(listenPort, '127.0.0.1')
    try {
      await once(socket, 'connect')
    } finally {
      socket.destroy()
    }
  })
  return {
    urlOf: (target) =>
      Object.assign(new URL(target), { hostname: '127.0.0.1', port: String(listenPort) }).href,
    log: () => log,
    async stop() {
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
