import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
  existsSync,
  readFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { prepareDataFolder, lockDataFolder } from '../../../src/dev/data-folder.ts'

/** PostgreSQL of root runs as another user, who has to pass through. */
const DATA_FOLDER_MODE = process.getuid?.() === 0 ? '711' : '700'

describe('the data folder of npm start', () => {
  let home: string
  let dataDir: string
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'posthorn-data-'))
    dataDir = join(home, 'data')
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  const modeOf = (path: string): string => (statSync(join(dataDir, path)).mode & 0o777).toString(8)

  it('is made for its owner only', () => {
    prepareDataFolder(dataDir)
    expect([modeOf('.'), modeOf('logs')]).to.deep.equal([DATA_FOLDER_MODE, '700'])
  })

  it('keeps the rights of what is there already', () => {
    mkdirSync(join(dataDir, 'sub'), { recursive: true })
    writeFileSync(join(dataDir, 'sub/tool'), 'x')
    chmodSync(join(dataDir, 'sub/tool'), 0o755)
    chmodSync(dataDir, 0o750)
    prepareDataFolder(dataDir)
    expect([modeOf('sub/tool'), modeOf('.')]).to.deep.equal(['755', process.getuid?.() === 0 ? '751' : '750'])
  })

  it('is refused in words where it cannot be used', () => {
    const file = join(home, 'file')
    writeFileSync(file, '')
    expect(() => prepareDataFolder(join(file, 'data'))).to.throw(/cannot be used \(\w+\)\. Set POSTHORN_DATA/)
  })
})

const MODULE = new URL('../../../src/dev/data-folder.ts', import.meta.url).href
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const API_URL = 'http://127.0.0.1:3000'

describe('the lock of a data folder', () => {
  let folder: string
  let others: (ChildProcess | Server)[]

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-lock-'))
    others = []
  })
  afterEach(() => {
    for (const other of others) 'kill' in other ? other.kill('SIGKILL') : other.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const file = (): string => join(folder, 'running.json')

  /** Has another process lock the folder. */
  async function lockElsewhere(): Promise<ChildProcess> {
    const script = `import { lockDataFolder } from ${JSON.stringify(MODULE)}
      await lockDataFolder(${JSON.stringify(folder)}, ${JSON.stringify(API_URL)})
      setInterval(() => undefined, 1000)
      process.stdout.write('locked')`
    const args = ['--import', 'tsx', '--input-type=module', '-e', script]
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
    others.push(child)
    await once(child.stdout, 'data')
    return child
  }

  async function refusal(): Promise<string> {
    const refused: unknown = await lockDataFolder(folder, API_URL).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(Error)
    return (refused as Error).message
  }

  /** A program that has the port of an earlier process now. */
  async function listen(greet: (socket: Socket) => void): Promise<number> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined)
      greet(socket)
    })
    others.push(server)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return (server.address() as AddressInfo).port
  }

  it('names the address and the process that holds it', async () => {
    const { pid } = await lockElsewhere()
    expect(await refusal())
      .to.include(`already running on the data folder ${folder}, at ${API_URL} (process ${pid})`)
      .and.include('POSTHORN_DATA')
  })

  it('is held by a process that is stopped and does not answer', async () => {
    const child = await lockElsewhere()
    child.kill('SIGSTOP')
    expect(await refusal()).to.include(`(process ${child.pid})`)
  })

  it('ends with its process, however that ends', async () => {
    const child = await lockElsewhere()
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(existsSync(file())).to.equal(true)
    const lock = await lockDataFolder(folder, API_URL)
    await lock.release()
    expect(existsSync(file())).to.equal(false)
  })

  it('is not held by another process that has the pid, nor by one that has the port', async () => {
    const left = { pid: process.pid, token: 'of-a-process-that-has-ended', apiUrl: API_URL }
    const ports = [
      await listen((socket) => socket.end('220 mail.example.com')),
      await listen((socket) => socket.end()),
      await listen((socket) => socket.destroy()),
    ]
    for (const port of ports) {
      writeFileSync(file(), JSON.stringify({ ...left, port }))
      await (await lockDataFolder(folder, API_URL)).release()
    }
    const silentPort = await listen(() => undefined)
    const { pid } = await ended()
    writeFileSync(file(), JSON.stringify({ ...left, pid, port: silentPort }))
    await (await lockDataFolder(folder, API_URL)).release()
  })

  it('is not held by a file that was written in part', async () => {
    for (const text of ['', '{"pid":12']) {
      writeFileSync(file(), text)
      const lock = await lockDataFolder(folder, API_URL)
      expect(JSON.parse(readFileSync(file(), 'utf8'))).to.include({ pid: process.pid, apiUrl: API_URL })
      await lock.release()
    }
  })

  async function ended(): Promise<ChildProcess> {
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    return child
  }
})
