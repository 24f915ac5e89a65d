import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { expect } from 'chai'
import { freePort } from '../../src/free-port.ts'
import { TEST_KEY_RING } from '../helpers/database/factories.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { useDatabase } from '../helpers/database/database.ts'

/** A supervisor starts a process again only once it has ended; a loaded machine may take its time. */
const ENDS_WITHIN_MS = 60_000

describe('posthorn serve that cannot start', () => {
  const database = useDatabase()

  /** Runs `posthorn serve` to its end; null when it has to be killed. */
  async function serve(env: Record<string, string>): Promise<{ code: number | null; output: string }> {
    const child = spawn(process.execPath, [testServers().posthorn, 'serve'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        DATABASE_URL: database.url,
        POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
        TEMPORAL_ADDRESS: testServers().temporalAddress,
        TEMPORAL_TASK_QUEUE: 'startup',
        LOG_LEVEL: 'warn',
        ...env,
      },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const timer = setTimeout(() => child.kill('SIGKILL'), ENDS_WITHIN_MS)
    await once(child, 'close')
    clearTimeout(timer)
    return { code: child.exitCode, output }
  }

  it('ends with the port and its number when the port is taken', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    const { code, output } = await serve({ PORT: String(port) })
    taken.close()
    expect(code).to.equal(1)
    expect(output).to.include(`Port ${port} (API) is taken. Stop what uses it or set PORT to another.`)
  })

  it('ends when the database cannot be reached', async () => {
    const { code, output } = await serve({
      DATABASE_URL: `postgres://a:b@127.0.0.1:${await freePort()}/x`,
      PORT: '0',
    })
    expect(code).to.equal(1)
    expect(output).to.include('ECONNREFUSED')
  })

  it('ends when the database is not up to date, and prints what to do', async () => {
    await database.dataSource.query('DELETE FROM migrations WHERE id = (SELECT max(id) FROM migrations)')
    const { code, output } = await serve({ PORT: '0' })
    expect(code).to.equal(1)
    expect(output).to.include('posthorn migrate')
  })
})
