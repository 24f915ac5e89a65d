import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { runtimePackages, type LockFile } from '../../src/dev/release/packages.ts'
import { runTool } from '../../src/dev/guarded-process.ts'
import { createTestDatabase, type TestDatabase } from '../helpers/database/database.ts'
import { eventually } from '../helpers/eventually.ts'
import { PROVIDE_TIMEOUT_MS, provideHelm } from '../helpers/manifests/go-tools.ts'
import { runProgram } from '../helpers/manifests/run-program.ts'
import { startPosthorn } from '../helpers/processes/posthorn.ts'
import { createReceiver } from '../helpers/receivers/receiver.ts'
import { testServers } from '../helpers/runner/servers.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const BUILD_TIMEOUT_MS = 300_000
const KEY = randomBytes(24).toString('hex')

describe('a release', function () {
  this.timeout(2 * BUILD_TIMEOUT_MS + PROVIDE_TIMEOUT_MS)
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  let folder: string
  let released: string

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-release-test-'))
    released = join(folder, 'release')
    await makeRelease(ROOT, released)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  const read = (file: string): string => readFileSync(join(released, file), 'utf8')

  it('has all its files, whose checksums are right', () => {
    const files = [
      'NOTES.md',
      'licences.txt',
      'openapi.json',
      `posthorn-${version}.tgz`,
      `posthorn-chart-${version}.tgz`,
      `posthorn-listen-${version}.tgz`,
      'sbom.cdx.json',
    ]
    expect(readdirSync(released)).to.have.members([...files, 'SHA256SUMS'])
    const { status, stdout } = runProgram('sha256sum', ['--check', 'SHA256SUMS'], { cwd: released })
    expect(status).to.equal(0)
    expect(stdout.trim().split('\n')).to.deep.equal(files.map((file) => `${file}: OK`))
  })

  it('names in its SBOM each package that runs in production, with its licence', () => {
    const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as LockFile
    const { bomFormat, components } = JSON.parse(read('sbom.cdx.json')) as {
      bomFormat: string
      components: {
        name: string
        version: string
        licenses: { license?: { id: string }; expression?: string }[]
      }[]
    }
    expect(bomFormat).to.equal('CycloneDX')
    const named = components.map(({ name, version }) => `${name} ${version}`)
    const needed = runtimePackages(lock).map(({ name, version }) => `${name} ${version}`)
    expect(named).to.have.members([...new Set(needed)])
    for (const { name, licenses } of components)
      expect(licenses[0]?.license?.id ?? licenses[0]?.expression, name).to.be.a('string')
  })

  it('has the same bytes when another clone makes it in another folder', async () => {
    const clone = join(folder, 'deeper', 'clone')
    mkdirSync(clone, { recursive: true })
    // With what is not committed yet.
    const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: ROOT,
    })
    const present = files
      .toString()
      .split('\0')
      .filter((file) => file !== '' && existsSync(join(ROOT, file)))
    const archive = execFileSync('tar', ['-c', '--null', '-T', '-'], {
      cwd: ROOT,
      input: present.join('\0'),
      maxBuffer: 256 * 1024 * 1024,
    })
    execFileSync('tar', ['-x'], { cwd: clone, input: archive })
    const copy = 'cp -al "$0" node_modules 2>/dev/null || { rm -rf node_modules; cp -a "$0" node_modules; }'
    execFileSync('sh', ['-c', copy, join(ROOT, 'node_modules')], { cwd: clone })
    await makeRelease(clone)
    expect(readFileSync(join(clone, 'release/SHA256SUMS'), 'utf8')).to.equal(read('SHA256SUMS'))
  })

  it('has a chart that Helm renders from its package', async function () {
    const helm = await provideHelm()
    if (helm === null) return this.skip()
    const values = {
      secrets: { existingSecret: 'posthorn' },
      settings: { TEMPORAL_ADDRESS: 'temporal:7233' },
      networkPolicy: { enabled: false },
    }
    const chart = join(released, `posthorn-chart-${version}.tgz`)
    const { status, stdout, stderr } = runProgram(
      helm,
      ['template', 'hooks', chart, '--values', '-', '--kube-version', '1.31.0'],
      { input: JSON.stringify(values) },
    )
    expect(status, stderr).to.equal(0)
    expect(stdout).to.include(`posthorn:${version}`)
  })

  describe('installed in an empty folder', () => {
    let installed: string
    let database: TestDatabase
    const posthorn = (args: string[], env = {}) =>
      runProgram(process.execPath, [join(installed, 'node_modules/posthorn/src/cli/bin.mjs'), ...args], {
        env,
      })

    before(async () => {
      installed = join(folder, 'installed')
      mkdirSync(installed)
      const args = ['install', '--no-audit', '--no-fund', join(released, `posthorn-${version}.tgz`)]
      await runTool({ command: 'npm', args, cwd: installed, timeoutMs: BUILD_TIMEOUT_MS })
      database = await createTestDatabase('template0')
    })
    after(() => database.drop())

    it('has the version and the OpenAPI document of the release', () => {
      expect(posthorn(['--version'])).to.deep.include({ status: 0, stdout: `${version}\n` })
      expect(posthorn(['openapi']).stdout).to.equal(read('openapi.json'))
    })

    it('migrates an empty database, and delivers', async () => {
      const env = { DATABASE_URL: database.url }
      expect(posthorn(['migrate'], env).stderr).to.equal('')
      const apiKeys = [{ name: 'test', key: KEY }]
      const members = [{ id: 'mem_a', name: 'A', email: 'a@example.com', fullAccess: true, apiKeys }]
      const seed = { organisations: [{ id: 'org_a', name: 'A', email: 'a@example.com', members }] }
      const seedFile = join(folder, 'seed.json')
      writeFileSync(seedFile, JSON.stringify(seed))
      expect(posthorn(['seed', seedFile], env).stderr).to.equal('')
      const receiver = await createReceiver()
      const service = await startPosthorn({
        program: join(installed, 'node_modules/posthorn/src/cli/bin.mjs'),
        databaseUrl: database.url,
        temporalAddress: testServers().temporalAddress,
        taskQueue: 'release',
      })
      try {
        const subscribedEventKeys = ['customer:created']
        const json = { url: receiver.url, subscribedEventKeys, enabled: true }
        const api = (path: string, body: object) =>
          service.call('POST', `/api/orgs/org_a/${path}`, { apiKey: KEY, body })
        expect((await api('webhooks', json)).status).to.equal(201)
        const event = { event: 'customer:created', data: { id: 'cus_1' } }
        expect((await api('events', event)).status).to.equal(202)
        await eventually(() => expect(receiver.posts).to.have.length(1))
        expect(receiver.posts[0]!.headers['user-agent']).to.equal(`Posthorn/${version}`)
      } finally {
        await service.stop()
        await receiver.close()
      }
    })
  })
})

/** Runs `npm run release` of a clone, which makes the release in `folder`, in release/ where none is given. */
async function makeRelease(clone: string, folder?: string): Promise<void> {
  const args = ['--import', 'tsx', 'src/dev/release/release.ts', ...(folder === undefined ? [] : [folder])]
  await runTool({ command: process.execPath, args, cwd: clone, timeoutMs: BUILD_TIMEOUT_MS })
}
