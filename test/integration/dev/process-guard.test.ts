import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { startGuardedProcess } from '../../../src/dev/guarded-process.ts'

const guardedProcessModule = new URL('../../../src/dev/guarded-process.ts', import.meta.url).href

// Children note which signal ended them; `first` takes its time, `stubborn` ignores every request to stop.
const children = {
  polite: `const note = (what) => fs.appendFileSync(process.env.NOTES, process.env.NAME + ' ' + what + '\\n')
    process.on('SIGINT', () => note('interrupted'))
    process.on('SIGTERM', () => setTimeout(() => { note('stopped'); process.exit(0) }, process.env.NAME === 'first' ? 300 : 0))
    setInterval(() => {}, 1000); console.log('up')`,
  stubborn: `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('up')`,
}

describe('a guarded process', () => {
  let folder: string
  let notes: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-guarded-'))
    notes = join(folder, 'notes')
    appendFileSync(notes, '')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('ends with its parent, even when that is killed with SIGKILL', async () => {
    const { parent, pids } = await startParent(
      `const guarded = [await start('first', polite), await start('second', stubborn)]`,
    )
    expect(pids.filter(isAlive)).to.have.length(2)
    parent.kill('SIGKILL')
    await eventually(() => expect(pids.filter(isAlive)).to.deep.equal([]))
    expect(readFileSync(notes, 'utf8')).to.equal('first stopped\n')
  })

  it('is stopped by its parent alone on Ctrl-C, in the order of the parent', async () => {
    const { parent, pids } = await startParent(
      `const guarded = [await start('first', polite), await start('second', polite)]
       process.on('SIGINT', async () => { for (const each of guarded) await each.stop(); process.exit(0) })`,
    )
    // Signals the whole process group of the parent, as a terminal does.
    process.kill(-Number(parent.pid), 'SIGINT')
    await once(parent, 'exit')
    expect(readFileSync(notes, 'utf8')).to.equal('first stopped\nsecond stopped\n')
    expect(pids.filter(isAlive)).to.deep.equal([])
  })

  it('reports the last lines of its log and the code when it ends before it is ready', async () => {
    const starting = start(`console.log('opening the database'); console.error('disk full'); process.exit(3)`)
    const message = await starting.then(
      () => expect.fail('it started'),
      (error: unknown) => (error as Error).message,
    )
    expect(message).to.include('Temporal ended before it was ready (exit code 3)')
    expect(message).to.include('opening the database\ndisk full\n')
  })

  it('reports a missing program', async () => {
    const starting = start('', { command: join(folder, 'missing') })
    const message = await starting.then(
      () => expect.fail('it started'),
      (error: unknown) => (error as Error).message,
    )
    expect(message).to.match(/cannot start .*missing.*ENOENT/)
  })

  it('is stopped when it is not ready in time', async () => {
    const starting = start(`console.log(process.pid); setInterval(() => {}, 1000)`, {
      isReady: () => false,
      readyTimeoutMs: 1_000,
    })
    const message = await starting.then(
      () => expect.fail('it started'),
      (error: unknown) => (error as Error).message,
    )
    expect(message).to.include('was not ready within 1 s')
    expect(isAlive(Number.parseInt(readFileSync(join(folder, 'temporal.log'), 'utf8'), 10))).to.equal(false)
  })

  it('reports that it ended by itself', async () => {
    const guarded = await start(`console.log('up'); setTimeout(() => process.exit(7), 3_000)`)
    expect(await guarded.exited).to.deep.equal({ code: 7, signal: null })
    await guarded.stop()
  })

  function start(
    script: string,
    options: Partial<Parameters<typeof startGuardedProcess>[0]> = {},
  ): ReturnType<typeof startGuardedProcess> {
    return startGuardedProcess({
      name: 'Temporal',
      command: process.execPath,
      args: ['-e', script],
      stopSignal: 'SIGTERM',
      logFile: join(folder, 'temporal.log'),
      isReady: (log) => log.includes('up'),
      readyTimeoutMs: 10_000,
      ...options,
    })
  }

  /** Starts a parent process with guarded children, in its own process group, as a terminal does. */
  async function startParent(body: string): Promise<{ parent: ChildProcess; pids: number[] }> {
    const script = `
      import { startGuardedProcess } from ${JSON.stringify(guardedProcessModule)}
      const { polite, stubborn } = ${JSON.stringify(children)}
      const start = (name, code) => startGuardedProcess({
        name, command: process.execPath, args: ['-e', code], stopSignal: 'SIGTERM', killAfterMs: 5000,
        env: { ...process.env, NAME: name, NOTES: ${JSON.stringify(notes)} },
        logFile: ${JSON.stringify(folder)} + '/' + name + '.log',
        isReady: (log) => log.includes('up'), readyTimeoutMs: 10000,
      })
      ${body}
      console.log(JSON.stringify(guarded.map((each) => each.pid)))`
    const args = ['--import', 'tsx', '--input-type=module', '-e', script]
    const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
    const [line] = (await once(parent.stdout, 'data')) as [Buffer]
    return { parent, pids: JSON.parse(line.toString()) as number[] }
  }
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
