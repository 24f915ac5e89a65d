import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../src/cli/migrate.ts'
import { onStopSignal, createStack } from '../src/process/process-end.ts'
import { defaultCacheDir } from '../src/dev/provision.ts'
import { startEmbeddedPostgres } from '../src/dev/embedded-postgres.ts'
import { OLDER_RELEASES, provideOlderPostgres, type OlderRelease } from '../src/dev/npm-programs.ts'
import { provideTemporalCli, startTemporalDevServer } from '../src/dev/temporal-dev-server.ts'
import { provideTimeSkippingServer } from './helpers/runner/time-skipping-server.ts'
import { provideChromium } from './helpers/browser/provide-chromium.ts'
import { installPosthorn } from './helpers/runner/installation.ts'
import { startMocha, sumCounts } from './helpers/runner/mocha-process.ts'
import type { TestServers } from './helpers/runner/servers.ts'

/** Folders of integration tests that take as long as all others. */
const FIRST_HALF = 'deliveries|incidents|observability'

/** Folders of integration tests that run after those of workflows. */
const WITH_WORKFLOWS = 'outbound|relay|stream'

/** End-to-end tests that take as long as all others. */
const WITH_ATTEMPTS = 'retry-job|inline-attempts|incidents|erasure|changes-in-flight'

/** Slow tests that take as long as all others: what happens under load and faults, and what is released. */
const UNDER_FAULTS = 'backup|bench-target|crashes|outages|release|retry-job|stream'

/** Tests of faults that take as long as all others: an outcome without its record, and a Temporal that falls silent. */
const OF_RECORDS = 'confirmed-outcomes|recording-faults|relay|stuck-workflow|temporal-silent'

/**
 * Runs `npm test` and the other suites (`npm run test:slow`, `test:protocol`, `test:faults`,
 * `test:browser`): starts one PostgreSQL and
 * one Temporal server for the whole run, installs Posthorn, and starts one mocha process for each list of files.
 * Further arguments go to mocha as they are, to one process for all.
 */
const SUITES: Record<string, string[][]> = {
  fast: [
    // The tests of a process run one after the other and mostly wait, so that two processors serve five of them.
    [`test/e2e/@(${WITH_ATTEMPTS})*.test.ts`, 'test/integration/cli/**/*.test.ts'],
    // Not beside workers: what Temporal hooks into promises makes the explorers of `test/unit` take four times as long.
    [`test/e2e/!(${WITH_ATTEMPTS})*.test.ts`, 'test/unit/**/*.test.ts'],
    ['test/workflows/**/*.test.ts', `test/integration/@(${WITH_WORKFLOWS})/**/*.test.ts`],
    [`test/integration/!(cli|${WITH_WORKFLOWS}|${FIRST_HALF})/**/*.test.ts`],
    [`test/integration/@(${FIRST_HALF})/**/*.test.ts`],
  ],
  browser: [['test/browser/[a-d]*.test.ts'], ['test/browser/[e-z]*.test.ts']],
  histories: [['test/histories/**/*.test.ts']],
  // What runs on every supported release of Node.js: test/nodes.ts.
  nodes: [['test/unit/**/*.test.ts', 'test/integration/**/*.test.ts']],
  // What depends on the release of PostgreSQL: POSTHORN_TEST_POSTGRES=15. Mails and push messages have no database.
  postgres: [
    ['test/integration/{db,deliveries}/**/*.test.ts'],
    [
      'test/integration/{accounts,incidents,operator,portal,retention,stream,webhooks}/**/!(mailer*|push).test.ts',
    ],
  ],
  // POSTHORN_PROTOCOL_SECONDS for the states, 600 if not given.
  protocol: [
    ['test/protocol/explore.test.ts'],
    [
      'test/protocol/mutants.test.ts',
      'test/integration/deliveries/protocol-permutations.test.ts',
      'test/unit/workflows/delivery-loop.test.ts',
    ],
  ],
  upgrade: [['test/upgrade/**/*.test.ts']],
  // POSTHORN_LASTING_MINUTES, 20 if not given.
  lasting: [['test/lasting/**/*.test.ts']],
  faults: [[`test/faults/@(${OF_RECORDS}).test.ts`], [`test/faults/!(${OF_RECORDS}|random-play).test.ts`]],
  // Alone, for it judges how late events come. POSTHORN_PLAY_SECONDS, 600 if not given, and POSTHORN_PLAY_SEED.
  play: [['test/faults/random-play.test.ts']],
  // Whether the random play finds defects that are planted into copies of the product.
  planted: [['test/planted/**/*.test.ts']],
  slow: [[`test/slow/@(${UNDER_FAULTS}).test.ts`], [`test/slow/!(${UNDER_FAULTS}).test.ts`]],
}

/** The data of a test run need not survive a power failure. */
const WITHOUT_DURABILITY = [
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
const processes = SUITES[suite]
if (processes === undefined) throw new Error(`no suite "${suite}": ${Object.keys(SUITES).join(', ')}`)

const folder = mkdtempSync(join(tmpdir(), 'posthorn-test-'))
// PostgreSQL does not run as root, and its user needs access.
chmodSync(folder, 0o755)
const stack = createStack()
stack.push('the folder', () => {
  rmSync(folder, { recursive: true, force: true })
  return Promise.resolve()
})
onStopSignal(async () => {
  await stack.stop()
  process.exit(1)
})

if (suite === 'protocol') process.env['POSTHORN_TEST_FURTHER'] = 'yes'
process.exitCode = await run(processes).finally(() => stack.stop())

async function run(processes: string[][]): Promise<number> {
  const [servers, posthorn] = await Promise.all([startServers(), installPosthorn(join(folder, 'posthorn'))])
  const started = mochaArguments(processes).map((args, index) => {
    const mocha = startMocha({
      args,
      servers: { ...servers, posthorn },
      folder,
      name: `mocha-${index}`,
      out: (chunk) => process.stdout.write(chunk),
      err: (chunk) => process.stderr.write(chunk),
    })
    stack.push('mocha', () => {
      mocha.stop()
      return Promise.resolve()
    })
    return mocha
  })
  const counts = await sumCounts(started)
  const countsFile = process.env['POSTHORN_TEST_COUNTS']
  if (countsFile !== undefined) writeFileSync(countsFile, JSON.stringify(counts))
  for (const test of counts.skipped) print(`SKIPPED: ${test}`)
  for (const failure of counts.failed) print(`FAILED: ${failure}`)
  print(`${counts.passes} passed, ${counts.failures} failed`)
  return counts.failures === 0 ? 0 : 1
}

/** Returns the arguments of each mocha process. */
function mochaArguments(processes: string[][]): string[][] {
  if (given.length === 0) return processes
  // The value of an option, as in `--grep retry`, is no file. Without one mocha would load this one.
  const namesFiles = given.some((argument) => argument.endsWith('.ts'))
  return [[...(namesFiles ? [] : processes.flat()), ...given]]
}

async function startServers(): Promise<Omit<TestServers, 'posthorn'>> {
  const env = process.env
  const cacheDir = defaultCacheDir(env)
  const temporalCli = await provideTemporalCli({ env, cacheDir, print })
  const timeSkippingServer = await provideTimeSkippingServer({ env, cacheDir, print })
  const chromium = suite === 'browser' ? await provideChromium({ env, print }) : null
  const temporal = await startTemporalDevServer({
    executable: temporalCli,
    dbFile: join(folder, 'temporal.db'),
    logFile: join(folder, 'temporal.log'),
    headless: true,
    print,
  })
  stack.push('Temporal', () => temporal.stop())
  const release = olderRelease(env['POSTHORN_TEST_POSTGRES'])
  const postgres = await startEmbeddedPostgres({
    ...(release === null ? {} : { installed: await provideOlderPostgres(release, { cacheDir, print }) }),
    dataDir: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    flags: WITHOUT_DURABILITY,
    print,
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
    chromium,
  }
}

/** Returns the release of PostgreSQL to test on; null: the one in package.json. */
function olderRelease(asked: string | undefined): OlderRelease | null {
  if (asked === undefined) return null
  const release = OLDER_RELEASES.find((older) => String(older) === asked)
  if (release === undefined) throw new Error(`POSTHORN_TEST_POSTGRES is one of ${OLDER_RELEASES.join(', ')}`)
  return release
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
