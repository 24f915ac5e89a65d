import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { migrate } from '../../src/cli/migrate.ts'
import type { Diagnosis } from '../../src/cli/doctor/check.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { runCli } from '../helpers/cli/run-cli.ts'
import { TEST_KEY_RING, TEST_VAPID_PRIVATE_KEY } from '../helpers/database/factories.ts'
import { createSilentHost } from '../helpers/doctor/doctored.ts'
import { eventually } from '../helpers/eventually.ts'
import { createMailServer, type MailServer } from '../helpers/notifications/mail-server.ts'
import { startPosthorn, type PosthornProcess } from '../helpers/processes/posthorn.ts'
import { testServers } from '../helpers/runner/servers.ts'

const SMTP_PASSWORD = 'smtp-pw-44721'

/** On a busy machine; a server that is silent would hold it for minutes. */
const ENDS_WITHIN_MS = 60_000

describe('posthorn doctor', () => {
  let folder: string
  let postgres: EmbeddedPostgres
  let mailServer: MailServer
  let posthorn: PosthornProcess | null = null
  let env: Record<string, string>

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-doctor-'))
    // PostgreSQL does not run as root, and its user needs access.
    chmodSync(folder, 0o755)
    // With the durability of a production server, unlike that of the test run.
    postgres = await startEmbeddedPostgres({
      dataDir: join(folder, 'postgres'),
      logFile: join(folder, 'postgres.log'),
      print: () => undefined,
    })
    await postgres.createDatabase('posthorn')
    await migrate(postgres.databaseUrl('posthorn'))
    mailServer = await createMailServer({ auth: { user: 'posthorn', password: SMTP_PASSWORD } })
    env = {
      DATABASE_URL: postgres.databaseUrl('posthorn'),
      TEMPORAL_ADDRESS: testServers().temporalAddress,
      TEMPORAL_TASK_QUEUE: `doctor-${randomUUID()}`,
      POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING,
      SMTP_HOST: mailServer.host,
      SMTP_PORT: String(mailServer.port),
      SMTP_TLS: 'none',
      SMTP_USER: 'posthorn',
      SMTP_PASSWORD,
      VAPID_PRIVATE_KEY: TEST_VAPID_PRIVATE_KEY,
      SMTP_FROM: 'ops@example.com',
    }
  })
  after(async () => {
    await posthorn?.stop()
    await mailServer.close()
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const secretsOf = (): string[] => [
    new URL(env['DATABASE_URL'] ?? '').password,
    'ab'.repeat(32),
    SMTP_PASSWORD,
    TEST_VAPID_PRIVATE_KEY,
  ]
  const expectNoSecret = (text: string): void => {
    for (const secret of secretsOf()) expect(text).to.not.include(secret)
  }

  it('ends with 0 in a healthy installation, and where it only warns', async () => {
    posthorn = await startPosthorn({
      databaseUrl: env['DATABASE_URL'] ?? '',
      temporalAddress: env['TEMPORAL_ADDRESS'] ?? '',
      taskQueue: env['TEMPORAL_TASK_QUEUE'] ?? '',
    })
    await eventually(async () => {
      const { code, stdout, stderr } = await runCli(['doctor', '--json'], env)
      const { status, version, findings } = JSON.parse(stdout) as Diagnosis
      const notOk = findings.filter(({ level }) => level !== 'ok')
      expect({ code, stderr, status, notOk }).to.deep.equal({ code: 0, stderr: '', status: 'ok', notOk: [] })
      expect(version).to.match(/^\d+\.\d+\.\d+$/)
      expect(findings.map(({ code: name }) => name)).to.deep.equal([
        'settings.environment',
        'database.connection',
        'database.version',
        'database.writable',
        'database.durability',
        'database.rights',
        'database.pooler',
        'database.clock',
        'database.migrations',
        'temporal.connection',
        'temporal.namespace',
        'temporal.search_attributes',
        'temporal.rights',
        'temporal.workers',
        'temporal.builds',
        'temporal.backlog',
        'keys.encryption',
        'keys.operator',
        'http.proxy',
        'outbound.guard',
        'outbound.policy',
        'mail.server',
        'mail.encryption',
        'push.key',
        'deliveries.backlog',
        'deliveries.endpoints',
        'deliveries.recovery',
        'deliveries.following',
        'deliveries.workflows',
        'deliveries.unpaused',
        'incidents.progress',
        'retry_jobs.progress',
        'retry_jobs.workflows',
        'erasures.progress',
        'erasures.workflows',
        'retention.progress',
      ])
      expectNoSecret(stdout)
    }, 30_000)
    const text = await runCli(['doctor'], { ...env, POSTHORN_ALLOW_HTTP: 'loopback' })
    expect(text.code).to.equal(0)
    expect(text.stdout).to.match(/^warning +outbound\.http_allowed /m)
    const lines = text.stdout.trim().split('\n')
    expect(lines).to.have.lengthOf(37)
    expect(lines.at(-1)).to.equal('0 error(s), 1 warning(s), 35 ok, 0 skipped')
    expectNoSecret(text.stdout)
  })

  it('ends with 1 and one line for each problem with its cure, in time, though a server is silent', async () => {
    const silent = await createSilentHost()
    const beganAtMs = performance.now()
    const { code, stdout, stderr } = await runCli(['doctor'], {
      ...env,
      DATABASE_URL: `postgres://posthorn:${SMTP_PASSWORD}@127.0.0.1:${silent.port}/x`,
      PORT: 'many',
    }).finally(() => silent.close())
    expect([code, stderr]).to.deep.equal([1, ''])
    expect(performance.now() - beganAtMs).to.be.below(ENDS_WITHIN_MS)
    expect(stdout).to.match(/^error +settings\.invalid +PORT must be .* Cure: correct the variable/m)
    expect(stdout).to.match(
      /^error +database\.unreachable +.*127\.0\.0\.1.* Cure: check that PostgreSQL runs/m,
    )
    expect(stdout).to.match(/^skipped +database\.version +not checked: it needs database\.connection$/m)
    expect(stdout).to.match(/^ok +temporal\.workers /m)
    expectNoSecret(stdout)
  })
})
