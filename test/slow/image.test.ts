import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { parse } from 'yaml'
import { freePort } from '../../src/free-port.ts'
import { TEST_KEY_RING } from '../helpers/database/factories.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database/database.ts'
import { readDocument } from '../helpers/documents/documents.ts'
import { eventually } from '../helpers/eventually.ts'
import { buildImage, type Image } from '../helpers/manifests/build-image.ts'
import { testServers } from '../helpers/runner/servers.ts'

const BUILD_TIMEOUT_MS = 900_000
const READY_TIMEOUT_MS = 60_000
const RUN_TIMEOUT_MS = 30_000
/** Of the user `node` in the images of Node.js. */
const USER = { uid: 1000, gid: 1000 }

type Compose = { services: Record<'api' | 'worker', { healthcheck: { test: string[] } }> }

describe('the image, built in folders by the stages of the Dockerfile', function () {
  this.timeout(BUILD_TIMEOUT_MS)
  let folder = ''
  let image: Image
  let database: TestDatabase

  before(async function () {
    // Only root runs programs as another user.
    if (process.getuid?.() !== 0) return this.skip()
    folder = mkdtempSync(join(tmpdir(), 'posthorn-image-'))
    chmodSync(folder, 0o755)
    image = await buildImage(folder)
    database = await createTestDatabase('template0')
  })
  after(async () => {
    if (folder === '') return
    rmSync(folder, { recursive: true, force: true })
    await database.drop()
  })

  const options = (env: Record<string, string>) => ({
    ...USER,
    cwd: join(image.root, image.workdir),
    env: { PATH: process.env['PATH'], ...image.env, DATABASE_URL: database.url, ...env },
  })
  const [PROGRAM, NODE] = [() => image.command[1] ?? '', process.execPath]
  const posthorn = (...args: string[]) =>
    spawnSync(NODE, [PROGRAM(), ...args], { ...options({}), encoding: 'utf8', timeout: RUN_TIMEOUT_MS })

  it('runs `serve` unless another command is named, as the user node, in production', () => {
    expect(image.command).to.deep.equal(['node', 'src/cli/bin.mjs', 'serve'])
    expect(image.user).to.equal('node')
    expect(image.env).to.deep.equal({ NODE_ENV: 'production', MALLOC_ARENA_MAX: '2' })
    const { version } = JSON.parse(readDocument('package.json')) as { version: string }
    expect(posthorn('--version')).to.include({ status: 0, stdout: `${version}\n`, stderr: '' })
  })

  it('has nothing that its user can change, no sources and no package for development', () => {
    const writable = spawnSync('find', ['.', '!', '-type', 'l', '-writable'], options({}))
    expect(writable.stdout.toString()).to.equal('')
    const found = spawnSync('sh', ['-c', 'ls; ls src src/cli; ls node_modules'], options({}))
    const names = found.stdout.toString().split('\n')
    expect(names).to.include.members(['dist', 'node_modules', 'package.json', 'bin.mjs', 'koa'])
    for (const name of ['test', 'workflows', 'http', 'mocha', 'typescript', '.env'])
      expect(names).to.not.include(name)
  })

  it('migrates, serves, and passes the health checks of docker-compose.yml', async () => {
    expect(posthorn('migrate').stderr).to.equal('')
    const ports = { api: await freePort(), worker: await freePort() }
    const settings = {
      POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
      TEMPORAL_ADDRESS: testServers().temporalAddress,
      TEMPORAL_TASK_QUEUE: 'image',
    }
    const start = (command: string, env: Record<string, string>): ChildProcess =>
      spawn(NODE, [PROGRAM(), command], { ...options({ ...settings, ...env }), stdio: 'ignore' })
    const processes = [
      start('api', { PORT: String(ports.api) }),
      start('worker', { METRICS_PORT: String(ports.worker) }),
    ]
    const compose = parse(readDocument('docker-compose.yml'), { merge: true }) as Compose
    try {
      for (const [name, usual] of [
        ['api', '3000'],
        ['worker', '9464'],
      ] as const) {
        const [, , ...args] = compose.services[name].healthcheck.test
        const check = args.map((arg) => arg.replace(`:${usual}/`, `:${ports[name]}/`))
        expect(check.join(' ')).to.include(`:${ports[name]}/readyz`)
        await eventually(() => {
          const { status, stderr } = spawnSync(NODE, check, { ...options({}), timeout: RUN_TIMEOUT_MS })
          expect(status, stderr.toString()).to.equal(0)
        }, READY_TIMEOUT_MS)
      }
    } finally {
      for (const child of processes) child.kill('SIGTERM')
      const codes = await Promise.all(
        processes.map(async (child) => {
          if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
          return child.exitCode
        }),
      )
      expect(codes).to.deep.equal([0, 0])
    }
  })
})
