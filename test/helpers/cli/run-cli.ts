import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { testServers } from '../runner/servers.ts'

export type CliResult = { code: number | null; stdout: string; stderr: string }

/** Runs `posthorn ARGS` as a process of its own, with nothing in its environment but `env`. */
export async function runCli(args: readonly string[], env: Record<string, string> = {}): Promise<CliResult> {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, [testServers().posthorn, ...args], {
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [code, stdout, stderr] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
  return { code, stdout, stderr }
}
