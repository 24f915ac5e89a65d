import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { TestServers } from './servers.ts'

const LAST_WORDS_MS = 1_000

/** What ran, and a line for each failure. */
export type Counts = { passes: number; failures: number; pending: number; failed: string[] }

/** A mocha process under way. Its output is held back until somebody lets it out. */
export type Lane = { ended: Promise<Counts>; letOut(): void; stop(): void }

/** Starts mocha in a process of its own. One that does not come to its end, or tells no counts, has a failure. */
export function startLane(options: {
  args: readonly string[]
  servers: TestServers
  /** Where it leaves its counts, under `name`. */
  folder: string
  name: string
  out: (chunk: Buffer) => void
  err: (chunk: Buffer) => void
}): Lane {
  const { args, servers, folder, name, out, err } = options
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
        POSTHORN_TEST_SERVERS: JSON.stringify(servers),
        POSTHORN_TEST_COUNTS: countsFile,
      },
    },
  )
  // A pipe that is full would hold the tests up: what may not be shown yet is kept here.
  const held: (() => void)[] = []
  let isOut = false
  for (const [from, to] of [
    [child.stdout, out],
    [child.stderr, err],
  ] as const) {
    from.on('data', (chunk: Buffer) => {
      if (isOut) to(chunk)
      else held.push(() => to(chunk))
    })
  }
  return {
    ended: untilOver(child).then((code) => countsOf(countsFile, code)),
    letOut() {
      isOut = true
      for (const show of held.splice(0)) show()
    },
    stop: () => void child.kill('SIGTERM'),
  }
}

/** Until the process has ended and its last words are here, which another that it left behind could hold open. */
async function untilOver(child: ChildProcess): Promise<number | null> {
  const closed = once(child, 'close')
  const [code] = (await once(child, 'exit')) as [number | null]
  await Promise.race([closed, delay(LAST_WORDS_MS)])
  return code
}

function countsOf(file: string, exitCode: number | null): Counts {
  const died = `a mocha process ended with ${exitCode === null ? 'a signal' : `exit code ${exitCode}`}`
  if (!existsSync(file)) return { passes: 0, failures: 1, pending: 0, failed: [died] }
  const counts = JSON.parse(readFileSync(file, 'utf8')) as Counts
  return exitCode === 0 || counts.failures > 0 ? counts : { ...counts, failures: 1, failed: [died] }
}

/** Shows the output of lanes that run at the same time one after the other; returns their counts together. */
export async function sumOf(lanes: readonly Lane[]): Promise<Counts> {
  const sum: Counts = { passes: 0, failures: 0, pending: 0, failed: [] }
  for (const lane of lanes) {
    lane.letOut()
    const { passes, failures, pending, failed } = await lane.ended
    sum.passes += passes
    sum.failures += failures
    sum.pending += pending
    sum.failed.push(...failed)
  }
  return sum
}
