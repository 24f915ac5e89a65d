import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../src/cli/migrate.ts'
import { onStopSignal } from '../src/cli/on-stop-signal.ts'
import { defaultCacheDir } from '../src/dev/cache.ts'
import { startEmbeddedPostgres } from '../src/dev/embedded-postgres.ts'
import { createStack } from '../src/cli/stack.ts'
import { provideTemporalCli } from '../src/dev/temporal-cli.ts'
import { startTemporalDevServer } from '../src/dev/temporal-dev-server.ts'
import { provideTimeSkippingServer } from '../src/dev/time-skipping-server.ts'
import { installPosthorn } from './helpers/runner/installation.ts'
import { startLane, sumOf } from './helpers/runner/mocha-lane.ts'
import type { TestServers } from './helpers/runner/servers.ts'

/**
 * `npm test` and the other suites (`npm run test:slow`, `test:faults`, `test:browser`): provides the engine and the time-skipping server, starts
 * one PostgreSQL and one Temporal server for the whole run, installs Posthorn, and hands all that to mocha: one process
 * for each lane of the suite. Further arguments go to mocha as they are, to one process for all.
 */
const SUITES: Record<string, string[][]> = {
  fast: [
    // They mostly wait. Only here may a worker run as a process: they all keep the one retention schedule.
    ['test/e2e/**/*.test.ts', 'test/workflows/**/*.test.ts'],
    ['test/unit/**/*.test.ts', 'test/integration/**/*.test.ts'],
  ],
  browser: [['test/browser/**/*.test.ts']],
  histories: [['test/histories/**/*.test.ts']],
  faults: [['test/faults/**/*.test.ts']],
  slow: [['test/slow/**/*.test.ts', 'test/load/**/*.test.ts']],
}

/** Retries each failed test once, since other load on the machine delays real timers. The reporter prints each retry. */
const SECOND_TRY = ['--retries', '1']

/** Data of a test run need not outlive a power cut. */
const FAST_AND_LOSE = [
  '-c',
  'fsync=off',
  '-c',
  'full_page_writes=off',
  '-c',
  'synchronous_commit=off',
  '-c',
  'max_connections=400',
]

const [suite = 'fast', ...given] = process.argv.slice(2)
const lanes = SUITES[suite]
if (lanes === undefined) throw new Error(`no suite "${suite}": ${Object.keys(SUITES).join(', ')}`)

const folder = mkdtempSync(join(tmpdir(), 'posthorn-test-'))
// PostgreSQL does not run as root: its user has to get in.
chmodSync(folder, 0o755)
const stack = createStack()
stack.push('the folder', () => {
  rmSync(folder, { recursive: true, force: true })
  return Promise.resolve()
})
onStopSignal(async () => {
  await stack.stop()
})

process.exitCode = await run(lanes).finally(() => stack.stop())

async function run(lanes: string[][]): Promise<number> {
  const [servers, posthorn] = await Promise.all([startServers(), installPosthorn(join(folder, 'posthorn'))])
  const started = mochaArguments(lanes).map((args, index) => {
    const lane = startLane({
      args,
      servers: { ...servers, posthorn },
      folder,
      name: `lane-${index}`,
      out: (chunk) => process.stdout.write(chunk),
      err: (chunk) => process.stderr.write(chunk),
    })
    stack.push('mocha', () => {
      lane.stop()
      return Promise.resolve()
    })
    return lane
  })
  const counts = await sumOf(started)
  const countsFile = process.env['POSTHORN_TEST_COUNTS']
  if (countsFile !== undefined) writeFileSync(countsFile, JSON.stringify(counts))
  for (const failure of counts.failed) say(`FAILED: ${failure}`)
  say(`${counts.passes} passed, ${counts.failures} failed`)
  return counts.failures === 0 ? 0 : 1
}

/** Of each mocha process. */
function mochaArguments(lanes: string[][]): string[][] {
  if (given.length === 0) return lanes.map((files) => [...files, ...SECOND_TRY])
  const namesFiles = given.some((argument) => !argument.startsWith('-'))
  return [[...(namesFiles ? [] : lanes.flat()), ...SECOND_TRY, ...given]]
}

async function startServers(): Promise<Omit<TestServers, 'posthorn'>> {
  const env = process.env
  const cacheDir = defaultCacheDir(env)
  const temporalCli = await provideTemporalCli({ env, cacheDir, say })
  const timeSkippingServer = await provideTimeSkippingServer({ env, cacheDir, say })
  const temporal = await startTemporalDevServer({
    executable: temporalCli,
    dbFile: join(folder, 'temporal.db'),
    logFile: join(folder, 'temporal.log'),
    headless: true,
    say,
  })
  stack.push('Temporal', () => temporal.stop())
  const postgres = await startEmbeddedPostgres({
    dataDir: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    flags: FAST_AND_LOSE,
    say,
  })
  stack.push('PostgreSQL', () => postgres.stop())
  await postgres.createDatabase('template')
  await migrate(postgres.databaseUrl('template'))
  return {
    adminUrl: postgres.adminUrl,
    templateDatabase: 'template',
    temporalAddress: temporal.address,
    temporalCli,
    timeSkippingServer,
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
