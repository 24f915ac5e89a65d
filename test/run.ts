import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '../src/cli/migrate.ts'
import { onStopSignal } from '../src/cli/on-stop-signal.ts'
import { defaultCacheDir } from '../src/dev/cache.ts'
import { startEmbeddedPostgres } from '../src/dev/embedded-postgres.ts'
import { createStack } from '../src/cli/stack.ts'
import { provideTemporalCli } from '../src/dev/temporal-cli.ts'
import { startTemporalDevServer } from '../src/dev/temporal-dev-server.ts'
import { provideTimeSkippingServer } from '../src/dev/time-skipping-server.ts'
import type { TestServers } from './helpers/servers.ts'

/**
 * `npm test`, `npm run test:slow` and `npm run test:browser`: provides the engine and the time-skipping server, starts one PostgreSQL and one
 * Temporal server for the whole run, and hands their addresses to mocha. Further arguments go to mocha as they are.
 */
const SUITES: Record<string, string[]> = {
  fast: [
    'test/unit/**/*.test.ts',
    'test/integration/**/*.test.ts',
    'test/workflows/**/*.test.ts',
    'test/e2e/**/*.test.ts',
  ],
  browser: ['test/browser/**/*.test.ts'],
  histories: ['test/histories/**/*.test.ts'],
  slow: ['test/slow/**/*.test.ts', 'test/load/**/*.test.ts'],
}

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
const specs = given.some((argument) => !argument.startsWith('-')) ? [] : SUITES[suite]
if (specs === undefined) throw new Error(`no suite "${suite}": ${Object.keys(SUITES).join(', ')}`)

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

process.exitCode = await run().finally(() => stack.stop())

async function run(): Promise<number> {
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

  const servers: TestServers = {
    adminUrl: postgres.adminUrl,
    templateDatabase: 'template',
    temporalAddress: temporal.address,
    temporalCli,
    timeSkippingServer,
  }
  return mocha(servers)
}

/** Runs mocha in a process of its own, says the counts, and returns its exit code. */
function mocha(servers: TestServers): Promise<number> {
  const countsFile = process.env['POSTHORN_TEST_COUNTS'] ?? join(folder, 'counts.json')
  const bin = fileURLToPath(import.meta.resolve('mocha/bin/mocha.js'))
  const reporter = fileURLToPath(new URL('./helpers/counting-reporter.cjs', import.meta.url))
  const args = ['--import', 'tsx', bin, '--reporter', reporter, ...(specs ?? []), ...given]
  const env = {
    ...process.env,
    POSTHORN_TEST_SERVERS: JSON.stringify(servers),
    POSTHORN_TEST_COUNTS: countsFile,
  }
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: 'inherit', env })
    stack.push('mocha', () => {
      child.kill('SIGTERM')
      return Promise.resolve()
    })
    child.on('error', reject)
    child.on('exit', (code) => {
      const { passes, failures } = JSON.parse(readFileSync(countsFile, 'utf8')) as {
        passes: number
        failures: number
      }
      say(`${passes} passed, ${failures} failed`)
      resolve(code ?? 1)
    })
  })
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
