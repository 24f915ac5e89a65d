import { spawnSync } from 'node:child_process'

const TIMEOUT_MS = 60_000
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024

/** The end of a program. `status` is its exit code; null after a signal. */
export type Ended = { status: number | null; stdout: string; stderr: string }

/** Runs a program to its end. */
export function runProgram(
  command: string,
  args: string[],
  options: { input?: string; env?: Record<string, string>; cwd?: string } = {},
): Ended {
  return spawnSync(command, args, {
    ...options,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...options.env },
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
    maxBuffer: MAX_OUTPUT_BYTES,
  })
}
