import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { verify } from '@octokit/webhooks-methods'
import { expect } from 'chai'
import { buildListenPackage, packFolder } from '../../src/dev/release/packages.ts'
import { runTool } from '../../src/dev/guarded-process.ts'
import { createTestApi } from '../helpers/api/api.ts'
import { startListen } from '../helpers/cli/run-cli.ts'
import { createMember } from '../helpers/database/factories.ts'
import { useDatabase } from '../helpers/database/database.ts'
import { eventually } from '../helpers/eventually.ts'
import { runProgram } from '../helpers/manifests/run-program.ts'
import { createReceiver } from '../helpers/receivers/receiver.ts'

const INSTALL_TIMEOUT_MS = 300_000
const MAX_TARBALL_BYTES = 100_000

/** The start of the program, in starts of Node.js alone: less than two, and five with the server's TypeORM and `pg`. */
const MAX_STARTS = 4
const MAX_PACKAGES = 5

describe('the package posthorn-listen, installed from its tarball in an empty folder', function () {
  this.timeout(INSTALL_TIMEOUT_MS)
  const database = useDatabase()
  let folder: string
  let tarball: string
  let program: string

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-listen-'))
    const [source, installed] = [
      mkdtempSync(join(folder, 'source-')),
      mkdtempSync(join(folder, 'installed-')),
    ]
    await buildListenPackage(source)
    tarball = await packFolder(source, folder)
    const args = ['install', '--no-audit', '--no-fund', '--prefix', installed, tarball]
    await runTool({ command: 'npm', args, cwd: installed, timeoutMs: INSTALL_TIMEOUT_MS })
    program = join(installed, 'node_modules/.bin/posthorn-listen')
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('is small, and brings no package of the server', () => {
    expect(statSync(tarball).size).to.be.at.most(MAX_TARBALL_BYTES)
    const packages = readdirSync(join(program, '../..')).filter((name) => !name.startsWith('.'))
    expect(packages).to.have.members(['posthorn-listen', 'eventsource-parser', 'undici'])
    expect(packages.length).to.be.at.most(MAX_PACKAGES)
  })

  it('shows its help at once, under its own name', () => {
    const [ofNode, durations]: [number[], number[]] = [[], []]
    for (let time = 0; time < 5; time++) {
      const beganAt = performance.now()
      runProgram(process.execPath, ['--eval', ''])
      const startedAt = performance.now()
      ofNode.push(startedAt - beganAt)
      const { status, stdout, stderr } = runProgram(program, ['--help'])
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' })
      expect(stdout)
        .to.match(/^Usage: posthorn-listen \[--events KEYS\]/)
        .and.not.include('posthorn listen')
      durations.push(performance.now() - startedAt)
    }
    // The quickest of five: other load delays a process, and never hurries it.
    expect(Math.min(...durations)).to.be.at.most(MAX_STARTS * Math.min(...ofNode))
  })

  it('tells its version, and what is wrong with its arguments', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    expect(runProgram(program, ['--version']).stdout).to.equal(`${version}\n`)
    const wrong = runProgram(program, ['--print'])
    expect(wrong.status).to.equal(2)
    expect(wrong.stderr).to.match(/^posthorn-listen cannot be called like this:\n {2}- --key or POSTHORN_KEY/)
  })

  it('forwards an event as a webhook sends it', async () => {
    const receiver = await createReceiver()
    const api = await createTestApi(database.dataSource)
    const member = await createMember(database.dataSource)
    const env = { POSTHORN_URL: api.url, POSTHORN_KEY: member.apiKey }
    const listener = startListen(['--forward-to', receiver.url, '--secret', 'local-secret'], env, [program])
    try {
      await listener.hasConnected()
      const raw = '{"event":"customer:created","data":{"id":"cus_1"}}'
      await api.call('POST', `/api/orgs/${member.organisationId}/events`, { apiKey: member.apiKey, raw })
      await eventually(() => expect(receiver.posts).to.have.length(1))
      const { body, headers } = receiver.posts[0]!
      expect(headers['user-agent']).to.match(/^Posthorn\/\d/)
      const signature = String(headers['x-webhook-signature'])
      expect(await verify('local-secret', body.toString(), signature)).to.equal(true)
    } finally {
      listener.kill('SIGTERM')
      expect(await listener.ended).to.equal(0)
      await Promise.all([receiver.close(), api.close()])
    }
  })
})
