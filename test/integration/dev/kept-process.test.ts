import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { startKeptProcess } from '../../../src/dev/child-process.ts'

const keptProcessModule = new URL('../../../src/dev/child-process.ts', import.meta.url).href

// Children note which signal ended them; `first` takes its time, `stubborn` ignores every request to stop.
const children = {
  polite: `const note = (what) => fs.appendFileSync(process.env.NOTES, process.env.NAME + ' ' + what + '\\n')
    process.on('SIGINT', () => note('interrupted'))
    process.on('SIGTERM', () => setTimeout(() => { note('stopped'); process.exit(0) }, process.env.NAME === 'first' ? 300 : 0))
    setInterval(() => {}, 1000); console.log('up')`,
  stubborn: `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000); console.log('up')`,
}

describe('a kept process', function () {
  this.timeout(30_000)
  let folder: string
  let notes: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-kept-'))
    notes = join(folder, 'notes')
    appendFileSync(notes, '')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('ends with its parent, even when that is killed with SIGKILL', async () => {
    const { parent, pids } = await startParent(
      `const kept = [await start('first', polite), await start('second', stubborn)]`,
    )
    expect(pids.filter(isAlive)).to.have.length(2)
    parent.kill('SIGKILL')
    await eventually(() => pids.every((pid) => !isAlive(pid)))
    expect(readFileSync(notes, 'utf8')).to.equal('first stopped\n')
  })

  it('is stopped by its parent alone on Ctrl-C, in the order of the parent', async () => {
    const { parent, pids } = await startParent(
      `const kept = [await start('first', polite), await start('second', polite)]
       process.on('SIGINT', async () => { for (const each of kept) await each.stop(); process.exit(0) })`,
    )
    // As a terminal does: to the whole group of the parent.
    process.kill(-Number(parent.pid), 'SIGINT')
    await once(parent, 'exit')
    expect(readFileSync(notes, 'utf8')).to.equal('first stopped\nsecond stopped\n')
    expect(pids.filter(isAlive)).to.deep.equal([])
  })

  it('gives the last lines of its log and the code when it ends before it is ready', async () => {
    const starting = start(`console.log('opening the database'); console.error('disk full'); process.exit(3)`)
    const message = await starting.then(
      () => expect.fail('it started'),
      (error: unknown) => (error as Error).message,
    )
    expect(message).to.include('The engine ended before it was ready (exit code 3)')
    expect(message).to.include('opening the database\ndisk full\n')
  })

  it('says so when the program is not there', async () => {
    const starting = start('', { command: join(folder, 'missing') })
    const message = await starting.then(
      () => expect.fail('it started'),
      (error: unknown) => (error as Error).message,
    )
    expect(message).to.match(/cannot start .*missing.*ENOENT/)
  })

  it('is stopped again when it does not get ready in time', async () => {
    const starting = start(`console.log(process.pid); setInterval(() => {}, 1000)`, {
      isReady: () => false,
      readyTimeoutMs: 1_000,
    })
    const message = await starting.then(
      () => expect.fail('it started'),
      (error: unknown) => (error as Error).message,
    )
    expect(message).to.include('was not ready within 1 s')
    expect(isAlive(Number.parseInt(readFileSync(join(folder, 'engine.log'), 'utf8'), 10))).to.equal(false)
  })

  it('tells that it ended by itself', async () => {
    const kept = await start(`console.log('up'); setTimeout(() => process.exit(7), 300)`)
    expect(await kept.exited).to.deep.equal({ code: 7, signal: null })
    await kept.stop()
  })

  function start(
    script: string,
    options: Partial<Parameters<typeof startKeptProcess>[0]> = {},
  ): ReturnType<typeof startKeptProcess> {
    return startKeptProcess({
      name: 'The engine',
      command: process.execPath,
      args: ['-e', script],
      stopSignal: 'SIGTERM',
      logFile: join(folder, 'engine.log'),
      isReady: (log) => log.includes('up'),
      readyTimeoutMs: 10_000,
      ...options,
    })
  }

  /** Runs a process of its own that starts kept ones, in a process group of its own as a terminal gives. */
  async function startParent(body: string): Promise<{ parent: ChildProcess; pids: number[] }> {
    const script = `
      import { startKeptProcess } from ${JSON.stringify(keptProcessModule)}
      const { polite, stubborn } = ${JSON.stringify(children)}
      const start = (name, code) => startKeptProcess({
        name, command: process.execPath, args: ['-e', code], stopSignal: 'SIGTERM', killAfterMs: 1000,
        env: { ...process.env, NAME: name, NOTES: ${JSON.stringify(notes)} },
        logFile: ${JSON.stringify(folder)} + '/' + name + '.log',
        isReady: (log) => log.includes('up'), readyTimeoutMs: 10000,
      })
      ${body}
      console.log(JSON.stringify(kept.map((each) => each.pid)))`
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

async function eventually(isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!isSo()) {
    if (Date.now() > deadline) expect.fail('it did not come about within 10 s')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
