import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { TestServers } from './servers.ts'

const LAST_OUTPUT_TIMEOUT_MS = 1_000

/** What ran, a line for each failure, and the title of each skipped test. */
export type Counts = { passes: number; failures: number; failed: string[]; skipped: string[] }

/** A running mocha process. Its output is buffered until `showOutput` is called. */
export type MochaProcess = { ended: Promise<Counts>; showOutput(): void; stop(): void }

/** Starts mocha in a process of its own. One that ends early, badly or without counts has a failure. */
export function startMocha(options: {
  args: readonly string[]
  servers: TestServers
  /** The process writes its counts into this folder, under `name`, and what is temporary. */
  folder: string
  name: string
  /** How long the process may live after its last test. */
  exitTimeoutMs?: number
  out: (chunk: Buffer) => void
  err: (chunk: Buffer) => void
}): MochaProcess {
  const { args, servers, folder, name, exitTimeoutMs, out, err } = options
  const countsFile = join(folder, `${name}.json`)
  const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js')
  const reporter = fileURLToPath(new URL('./counting-reporter.cjs', import.meta.url))
  const color = process.stdout.isTTY ? ['--color'] : []
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', mocha, '--reporter', reporter, ...color, ...args],
    {
      stdio: ['inherit', 'pipe', 'pipe'],
      env: {
        ...process.env,
        TMPDIR: folder,
        // Where what shall outlive the run goes.
        POSTHORN_TEST_KEPT: tmpdir(),
        POSTHORN_TEST_SERVERS: JSON.stringify(servers),
        POSTHORN_TEST_COUNTS: countsFile,
        ...(exitTimeoutMs === undefined ? {} : { POSTHORN_TEST_EXIT_TIMEOUT_MS: String(exitTimeoutMs) }),
      },
    },
  )
  // A full pipe would block the tests, so output that may not be shown yet is buffered here.
  const buffered: (() => void)[] = []
  let isShown = false
  for (const [from, to] of [
    [child.stdout, out],
    [child.stderr, err],
  ] as const) {
    from.on('data', (chunk: Buffer) => {
      if (isShown) to(chunk)
      else buffered.push(() => to(chunk))
    })
  }
  return {
    ended: waitForEnd(child).then((code) => countsOf(countsFile, code)),
    showOutput() {
      isShown = true
      for (const show of buffered.splice(0)) show()
    },
    stop: () => void child.kill('SIGTERM'),
  }
}

/** Waits for the exit and the last output, whose pipe a process that was left behind could hold open. */
async function waitForEnd(child: ChildProcess): Promise<number | null> {
  const closed = once(child, 'close')
  const [code] = (await once(child, 'exit')) as [number | null]
  await Promise.race([closed, delay(LAST_OUTPUT_TIMEOUT_MS)])
  return code
}

function countsOf(file: string, exitCode: number | null): Counts {
  const died = `a mocha process ended with ${exitCode === null ? 'a signal' : `exit code ${exitCode}`}`
  if (!existsSync(file)) return { passes: 0, failures: 1, failed: [died], skipped: [] }
  const counts = JSON.parse(readFileSync(file, 'utf8')) as Counts
  return exitCode === 0 || counts.failures > 0 ? counts : { ...counts, failures: 1, failed: [died] }
}

/** Shows the output of concurrent processes one after the other and returns the sum of their counts. */
export async function sumCounts(processes: readonly MochaProcess[]): Promise<Counts> {
  const sum: Counts = { passes: 0, failures: 0, failed: [], skipped: [] }
  for (const mocha of processes) {
    mocha.showOutput()
    const { passes, failures, failed, skipped } = await mocha.ended
    sum.passes += passes
    sum.failures += failures
    sum.failed.push(...failed)
    sum.skipped.push(...skipped)
  }
  return sum
}
