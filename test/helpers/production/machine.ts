import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startGuardedProcess, type GuardedProcess } from '../../../src/dev/guarded-process.ts'
import { startEmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts'
import { startTemporalDevServer } from '../../../src/dev/temporal-dev-server.ts'
import { freePort } from '../../../src/free-port.ts'
import type { DumpPrograms } from '../database/pg-dump.ts'
import { testServers } from '../runner/servers.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Stands for the machine of an operator: an empty PostgreSQL, an empty Temporal, a shell, and a file system in a folder. */
export type Machine = {
  /** Path of a file of the machine on this one: `/etc/x` in its folder. */
  path(path: string): string
  /** Text of a document with the machine's paths and ports in place of the usual ones. */
  here(text: string): string
  run: ShellSession['run']
  /** Starts the command of a systemd unit as systemd does; resolves when it is connected to Temporal. */
  start(unit: string, command?: string, env?: Record<string, string>): Promise<GuardedProcess>
  close(): Promise<void>
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** What a clone of the repository does not have. */
const NOT_IN_A_CLONE = ['.git', 'node_modules', 'dist', 'coverage', '.posthorn']

/** Receivers of a test are on loopback. */
const LOCAL_RECEIVERS = { POSTHORN_ALLOW_HTTP: 'true', POSTHORN_ALLOWED_CIDRS: '127.0.0.0/8' }

/** On a busy machine; alone it takes three seconds. */
const READY_TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 30_000
const print = (): void => undefined

/** `tools`: paths of further programs, by the name of their command. `env`: further variables of its shell. */
export async function createMachine(options: {
  programs: DumpPrograms
  tools: Record<string, string>
  env: Record<string, string>
}): Promise<Machine> {
  const { programs, env } = options
  const tools = { temporal: testServers().temporalCli, ...options.tools }
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-machine-'))
  // PostgreSQL does not run as root: its user has to get in.
  chmodSync(folder, 0o755)
  const path = (given: string): string => join(folder, given)
  for (const made of ['usr/local/bin', 'etc/prometheus', 'servers'])
    mkdirSync(path(made), { recursive: true })
  for (const [name, tool] of Object.entries(tools)) symlinkSync(tool, path(`usr/local/bin/${name}`))
  cpSync(ROOT, path('opt/posthorn'), {
    recursive: true,
    filter: (source) => !NOT_IN_A_CLONE.includes(source.slice(ROOT.length)),
  })
  const installed = await programs.provideServer()
  const postgres = await startEmbeddedPostgres({
    ...(installed === null ? {} : { installed }),
    dataDir: path('servers/postgres'),
    logFile: path('servers/postgres.log'),
    print,
  })
  const temporal = await startTemporalDevServer({
    executable: testServers().temporalCli,
    dbFile: path('servers/temporal.db'),
    logFile: path('servers/temporal.log'),
    headless: true,
    searchAttributes: false,
    print,
  })
  const ports: Record<string, string> = {
    3000: String(await freePort()),
    9464: String(await freePort()),
    5432: String(postgres.port),
  }
  const here = (text: string): string =>
    text
      .replaceAll(/(?<![\w.}])\/(?=(?:opt|etc|usr\/local\/bin)\/)/g, `${folder}/`)
      .replaceAll(/\b(?:3000|9464|5432)\b/g, (port) => ports[port] ?? port)
  const PATH = [path('usr/local/bin'), dirname(process.execPath), process.env['PATH']].join(':')
  const session = startShellSession(path('session'), {
    ...definedOf(process.env),
    // What `npm ci` does besides takes a while and proves nothing.
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_prefer_offline: 'true',
    PATH,
    ADMIN_URL: postgres.adminUrl,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: 'posthorn',
    ...LOCAL_RECEIVERS,
    ...env,
  })
  const processes: GuardedProcess[] = []
  return {
    path,
    here,
    run: (commands, timeoutMs) => session.run(commands, timeoutMs),
    async start(unit, command, more = {}) {
      const [program = '', ...args] = unitValue(unit, 'ExecStart').split(' ')
      const file = readFileSync(unitValue(unit, 'EnvironmentFile'), 'utf8')
      const settings = Object.fromEntries(
        [...file.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
      )
      const started = await startGuardedProcess({
        name: 'the service',
        command: program,
        args: command === undefined ? args : [command],
        cwd: '/',
        env: { PATH, ...LOCAL_RECEIVERS, ...settings, ...more },
        stopSignal: 'SIGTERM',
        killAfterMs: STOP_TIMEOUT_MS,
        logFile: path('servers/service.log'),
        isReady: (log) => log.includes('"temporal.connected"'),
        readyTimeoutMs: READY_TIMEOUT_MS,
      })
      processes.push(started)
      return started
    },
    async close() {
      await Promise.all(processes.map((started) => started.stop()))
      await session.close()
      await temporal.stop()
      await postgres.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The value of a directive that a systemd unit has once. */
export function unitValue(unit: string, name: string): string {
  const [, value] = new RegExp(`^${name}=(.*)$`, 'm').exec(unit) ?? []
  if (value === undefined) throw new Error(`the unit has no ${name}`)
  return value
}

function definedOf(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => !!entry[1]))
}

/** One shell in which a reader pastes commands: variables and the working folder stay from one `run` to the next. */
type ShellSession = {
  /**
   * Runs commands and returns their output. Their standard input is empty.
   *
   * @throws Error with their output when one of them fails or they take too long; the session has ended then
   */
  run(commands: string, timeoutMs?: number): Promise<{ stdout: string; stderr: string }>
  /** Kills the shell with everything that it started. */
  close(): Promise<void>
}

const RUN_TIMEOUT_MS = 60_000

/** Starts a POSIX shell that stops at the first error and at unset variables. `folder` receives its files. */
function startShellSession(folder: string, env: Record<string, string>): ShellSession {
  mkdirSync(folder, { recursive: true })
  const shell = spawn('sh', ['-eu'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  const exited = once(shell, 'exit')
  exited.catch(() => undefined)
  // A shell that has ended cannot be written to; its `exit` reports that.
  shell.stdin.on('error', () => undefined)
  const killWithUs = (): void => killGroup(shell.pid)
  process.once('exit', killWithUs)
  let onDone: (isDone: boolean) => void = () => undefined
  // The shell itself prints nothing but the end of each run.
  shell.stdout.on('data', () => onDone(true))
  let runs = 0

  return {
    async run(commands, timeoutMs = RUN_TIMEOUT_MS) {
      const file = join(folder, String(++runs))
      writeFileSync(file, commands)
      const output = (): { stdout: string; stderr: string } => ({
        stdout: readFileSync(`${file}.out`, 'utf8'),
        stderr: readFileSync(`${file}.err`, 'utf8'),
      })
      for (const stream of ['out', 'err']) writeFileSync(`${file}.${stream}`, '')
      const timer = setTimeout(killWithUs, timeoutMs)
      const done = new Promise<boolean>((resolve) => (onDone = resolve))
      // Sourced, so that a here-document and an empty standard input go together.
      shell.stdin.write(`. '${file}' </dev/null >'${file}.out' 2>'${file}.err'\necho done\n`)
      const isDone = await Promise.race([done, exited.then(() => false)])
      clearTimeout(timer)
      if (isDone) return output()
      const { stdout, stderr } = output()
      const why = shell.signalCode === null ? 'failed' : `not done after ${timeoutMs / 1_000} s`
      throw new Error(`${why}:\n${commands}\n${stdout}\n${stderr}`)
    },
    async close() {
      process.off('exit', killWithUs)
      killWithUs()
      if (shell.exitCode === null && shell.signalCode === null) await exited
    },
  }
}

/** A shell and what it started are one process group. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}
