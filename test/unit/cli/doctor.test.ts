import { expect } from 'chai'
import {
  defineCheck,
  type Check,
  ok,
  problem,
  type Finding,
  runChecks,
} from '../../../src/cli/doctor/check.ts'
import {
  durabilityFindings,
  versionFindings,
  writableFindings,
} from '../../../src/cli/doctor/database-checks.ts'
import { backlogFindings, buildFindings } from '../../../src/cli/doctor/temporal-checks.ts'

const codesOf = (findings: readonly Finding[]): string[] =>
  findings.map(({ level, code }) => `${level} ${code}`)

const check = (name: string, run: Check['run'], needs: string[] = []): Check =>
  defineCheck({}, { name, settings: [], needs, failure: 'database.check_failed', run })

describe('the checks of posthorn doctor', () => {
  it('run to their end, whatever becomes of the others, and are sorted by area', async () => {
    const findings = await runChecks([
      check('push.key', () => Promise.resolve([ok('push.key', 'fine')])),
      check('database.connection', () => Promise.reject(new Error('no route'))),
      check('database.version', () => Promise.resolve([ok('database.version', '18')]), [
        'database.connection',
      ]),
      check('keys.encryption', () => Promise.resolve([ok('keys.encryption', '1')]), ['database.version']),
    ])
    expect(codesOf(findings)).to.deep.equal([
      'error database.check_failed',
      'skipped database.version',
      'skipped keys.encryption',
      'ok push.key',
    ])
    expect(findings[0]?.seen).to.equal('database.connection: no route')
  })

  it('are given up after the time limit', async () => {
    const never = check('database.connection', () => new Promise(() => undefined))
    const keepAlive = setInterval(() => undefined, 1_000)
    const findings = await runChecks([never], { timeoutMs: 20 }).finally(() => clearInterval(keepAlive))
    expect(codesOf(findings)).to.deep.equal(['error database.check_failed'])
    expect(findings[0]?.seen).to.include('took too long')
  })

  it('go on after a warning of one that they need', async () => {
    const findings = await runChecks([
      check('temporal.namespace', () => Promise.resolve([problem('temporal.namespace_unreadable', 'no')])),
      check('temporal.rights', () => Promise.resolve([ok('temporal.rights', 'yes')]), ['temporal.namespace']),
    ])
    expect(codesOf(findings)).to.deep.equal(['warning temporal.namespace_unreadable', 'ok temporal.rights'])
  })

  it('are skipped where a setting that they need is not valid', async () => {
    const withSetting = defineCheck(
      {},
      {
        name: 'push.key',
        settings: ['vapidPrivateKey'],
        failure: 'push.invalid',
        run: () => Promise.resolve([]),
      },
    )
    const [finding] = await runChecks([withSetting])
    expect(finding).to.deep.include({ level: 'skipped', seen: 'not checked: VAPID_PRIVATE_KEY is not valid' })
  })

  it('name a release of PostgreSQL that is too old, or newer than the tested ones', () => {
    expect(codesOf(versionFindings({ version: '14.9', release: 14 }))).to.deep.equal([
      'error database.version_unsupported',
    ])
    for (const release of [15, 18])
      expect(codesOf(versionFindings({ version: `${release}.1`, release }))).to.deep.equal([
        'ok database.version',
      ])
    expect(codesOf(versionFindings({ version: '19.0', release: 19 }))).to.deep.equal([
      'warning database.version_untested',
    ])
  })

  it('name a standby, and accept a server with synchronous standbys', () => {
    expect(codesOf(writableFindings({ isStandby: true, isReadOnly: false }))).to.deep.equal([
      'error database.read_only',
    ])
    const durable = { fsync: 'on', fullPageWrites: 'on', synchronousCommit: 'remote_apply' }
    expect(codesOf(durabilityFindings(durable))).to.deep.equal(['ok database.durability'])
  })

  it('name workers of different builds, and tasks that wait for too long', () => {
    const worker = (buildId: string | null) => ({ buildId })
    const tasks = { taskQueue: 'q', taskType: 'workflow', backlog: 3, backlogAgeMs: 61_000 } as const
    const queue = { ...tasks, hasHeartbeats: false }
    expect(codesOf(buildFindings([{ ...queue, workers: [worker('a'), worker('b')] }]))).to.deep.equal([
      'warning temporal.workers_differ',
    ])
    expect(buildFindings([{ ...queue, workers: [worker(null)] }])).to.deep.equal([])
    expect(backlogFindings([{ ...queue, workers: [] }])[0]).to.deep.include({
      code: 'temporal.backlog_old',
      seen: 'q (workflow): 3, the oldest 61 s',
    })
    expect(codesOf(backlogFindings([{ ...queue, backlogAgeMs: 59_000, workers: [] }]))).to.deep.equal([
      'ok temporal.backlog',
    ])
  })
})
