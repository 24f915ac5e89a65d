import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { clock } from './clock.ts'
import { distribution } from './distribution.ts'

export type Machine = {
  date: string
  cpu: string
  cores: number
  memoryGb: number
  node: string
  linux: string
  /** What the figures belong to; with a mark if the working tree has changes. */
  commit: string
  /** What a commit of PostgreSQL waits for: writing one page and having it on the disk. */
  syncMs: { p50: number; p99: number }
  summary: string
}

const SYNCS = 200
const PAGE_BYTES = 8_192

/** `folder` is where the data will lie. */
export async function describeMachine(folder: string): Promise<Machine> {
  const [first] = cpus()
  const { p50, p99 } = distribution(measureSyncs(join(folder, 'sync')))
  const machine = {
    date: new Date().toISOString(),
    cpu: first?.model ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    node: process.version,
    linux: release(),
    commit: await describeCommit(),
    syncMs: { p50, p99 },
  }
  const hardware = `${machine.cores} × ${machine.cpu}, ${machine.memoryGb} GB`
  const software = `Node ${machine.node}, commit ${machine.commit}`
  return { ...machine, summary: `${hardware}; ${software}; a page is on the disk in ${p50} ms (p99 ${p99})` }
}

function measureSyncs(file: string): number[] {
  const descriptor = openSync(file, 'w')
  const page = Buffer.alloc(PAGE_BYTES, 1)
  const took = Array.from({ length: SYNCS }, () => {
    const startedAt = clock()
    writeSync(descriptor, page)
    fdatasyncSync(descriptor)
    return clock() - startedAt
  })
  closeSync(descriptor)
  rmSync(file)
  return took
}

async function describeCommit(): Promise<string> {
  const git = promisify(execFile)
  return git('git', ['describe', '--always', '--dirty'], { cwd: import.meta.dirname }).then(
    ({ stdout }) => stdout.trim(),
    () => 'unknown',
  )
}
