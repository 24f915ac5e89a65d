import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { findOnPath } from '../../src/dev/provision.ts'
import { freePort } from '../../src/free-port.ts'
import { callApi } from '../helpers/api/api.ts'
import { eventually } from '../helpers/eventually.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const README = readFileSync(join(root, 'README.md'), 'utf8')
const INTEGRATE = readFileSync(join(root, 'docs/integrate.md'), 'utf8')

/** A promise of `npm start`. */
const STOPPED_WITHIN_MS = 10_000

type Started = { child: ChildProcess; output(): string; ready(): Promise<void>; exited: Promise<unknown> }

describe('npm start', () => {
  let folder: string
  let ports: Record<string, string>
  let running: Started[] = []
  /** The one that several tests look at, since a start takes longer than they do. */
  let shared: Started | null = null
  /** How long its starts took. */
  const startsMs: number[] = []
  let posts = 0
  /** A receiver that answers from its second POST on. */
  const hanging = createHttpServer((_request, response) => {
    posts++
    if (posts > 1) response.end()
  })

  before(async () => {
    await new Promise<void>((resolve) => hanging.listen(0, '127.0.0.1', resolve))
    folder = mkdtempSync(join(tmpdir(), 'posthorn-start-'))
    ports = {
      PORT: String(await freePort()),
      TEMPORAL_PORT: String(await freePort()),
      TEMPORAL_UI_PORT: String(await freePort()),
    }
  })
  afterEach(async () => {
    for (const { child, exited } of running.filter((started) => started !== shared)) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM')
      await exited
    }
    running = shared === null ? [] : [shared]
  })
  after(async () => {
    shared?.child.kill('SIGTERM')
    await shared?.exited
    hanging.closeAllConnections()
    hanging.close()
    await rm(folder, { recursive: true, force: true })
  })

  function start(env: Record<string, string> = {}): Started {
    const child = spawn('npm', ['start'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, POSTHORN_DATA: join(folder, 'data'), ...ports, ...env },
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
    const started: Started = {
      child,
      output: () => text,
      exited: once(child, 'exit'),
      ready: () =>
        eventually(() => {
          if (child.exitCode !== null) throw new Error(`npm start ended:\n${text}`)
          expect(text).to.include('Started in')
        }, 60_000),
    }
    running.push(started)
    return started
  }
  async function startShared(): Promise<Started> {
    if (shared !== null) return shared
    const startedAtMs = performance.now()
    shared = start()
    await shared.ready()
    startsMs.push(performance.now() - startedAtMs)
    return shared
  }
  const api = (): string => `http://127.0.0.1:${ports['PORT']!}`
  const curlLines = (output: string): string[] =>
    output.split('\n').filter((line) => line.trim().startsWith('curl '))
  const sh = (script: string, env: Record<string, string> = {}): string =>
    execFileSync('sh', ['-eu', '-c', script], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, ...env },
    })
  /** Processes that belong to this instance: our own, PostgreSQL's and Temporal's all name its data folder. */
  const processes = (): string[] =>
    execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
      .split('\n')
      .filter((line) => line.includes(folder))

  async function endsBy(signal: NodeJS.Signals): Promise<void> {
    const instance = await startShared()
    shared = null
    expect(processes()).not.to.have.length(0)
    const toldAt = Date.now()
    instance.child.kill(signal)
    await eventually(() => expect(processes()).to.deep.equal([]), STOPPED_WITHIN_MS)
    await instance.exited
    expect(Date.now() - toldAt).to.be.below(STOPPED_WITHIN_MS)
  }

  it('prints two lines that work when pasted: the event arrives at the demo receiver', async () => {
    const instance = await startShared()
    const [createLine, publishLine] = curlLines(instance.output())
    expect(JSON.parse(sh(createLine!)))
      .to.have.property('signingSecret')
      .that.matches(/^[0-9a-f]{64}$/)
    const published = JSON.parse(sh(publishLine!)) as { deliveries: { id: string }[] }
    expect(published.deliveries).to.have.length(1)
    await eventually(() => expect(instance.output()).to.include(published.deliveries[0]!.id))
    const ui = /Temporal UI\s+(\S+)/.exec(instance.output())![1]!
    expect((await fetch(ui)).status).to.equal(200)
    expect((await callApi(api(), 'GET', '/readyz')).json).to.deep.equal({ database: 'up', engine: 'up' })
  })

  it('prints a line that examines it, and one that lists its workflows', async () => {
    const instance = await startShared()
    const lineWith = (words: string): string =>
      instance
        .output()
        .split('\n')
        .find((line) => line.includes(words))!
    const findings = sh(lineWith('npx posthorn doctor'), { DATABASE_URL: 'postgres://elsewhere.invalid/x' })
    expect(findings)
      .to.match(/^ok +database\.connection +PostgreSQL answers at 127\.0\.0\.1:/m)
      .and.match(/^ok +temporal\.workers /m)
      .and.match(/^ok +keys\.encryption /m)
      .and.match(/^0 error\(s\), /m)
    expect(instance.output()).to.match(/Temporal CLI +\/\S+ \(\d+\.\d+\.\d+\S* \(Server /)
    expect(sh(lineWith(' workflow list --address '))).to.include('deliverEvent')
  })

  it('keeps nothing that another user of the machine may read', async () => {
    await startShared()
    const readable = execFileSync('find', [join(folder, 'data'), '-mindepth', '1', '-perm', '/077'])
    expect(readable.toString()).to.equal('')
  })

  it('has a mailbox that a browser and a program can read', async () => {
    const instance = await startShared()
    const mailbox = /Mailbox\s+(\S+)/.exec(instance.output())![1]!
    expect(await (await fetch(mailbox, { headers: { accept: 'text/html' } })).text()).to.include(
      'No mail yet',
    )
    expect(await (await fetch(mailbox)).json()).to.deep.equal({ data: [] })
  })

  it('serves metrics on a separate port, which it prints', async () => {
    const instance = await startShared()
    const metrics = /Metrics\s+(\S+)/.exec(instance.output())![1]!
    expect(await (await fetch(metrics)).text()).to.include('\nposthorn_temporal_up 1\n')
    expect((await callApi(api(), 'GET', '/metrics')).status).to.equal(404)
  })

  it('ends everything it started within 10 seconds of SIGTERM, even while a receiver hangs', async () => {
    const instance = await startShared()
    const apiKey = /API key\s+(\S+)/.exec(instance.output())![1]!
    const { port } = hanging.address() as { port: number }
    const body = { url: `http://127.0.0.1:${port}/`, subscribedEventKeys: ['call:created'], enabled: true }
    await callApi(api(), 'POST', '/api/orgs/org_demo/webhooks', { apiKey, body })
    const event = { event: 'call:created', data: {} }
    await callApi(api(), 'POST', '/api/orgs/org_demo/events', { apiKey, body: event })
    await eventually(() => expect(posts).to.equal(1))
    await endsBy('SIGTERM')
    expect(instance.output()).not.to.include('Could not stop')
  })

  it('keeps its data, is ready again about as soon as the first time, and repeats the attempt that was cut off', async () => {
    const instance = await startShared()
    const [firstMs, againMs] = startsMs as [number, number]
    // Whatever else the machine does delays both.
    expect(againMs).to.be.below(3 * firstMs + 10_000)
    const key = /API key\s+(\S+)/.exec(instance.output())![1]!
    const listed = await callApi(api(), 'GET', '/api/orgs/org_demo/webhooks', { apiKey: key })
    expect((listed.json as { data: unknown[] }).data).to.have.length(2)
    await eventually(() => expect(posts).to.equal(2))
  })

  it('ends everything it started within 10 seconds of SIGINT', () => endsBy('SIGINT'))

  it('refuses a wrong setting before it starts a server', async () => {
    const wrong = start({ POSTHORN_DATA: join(folder, 'wrong'), RETENTION_FAILED_DAYS: 'ninety' })
    await wrong.exited
    expect(wrong.child.exitCode).to.equal(1)
    expect(wrong.output())
      .to.include('RETENTION_FAILED_DAYS')
      .and.not.match(/PostgreSQL|Temporal/)
  })

  it('names a port that is taken and the variable that changes it', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    const instance = start({ PORT: String(port) })
    await instance.exited
    expect(instance.child.exitCode).to.equal(1)
    expect(instance.output()).to.include(`Port ${port} (API) is taken`).and.include('PORT')
    taken.close()
  })

  /** Runs the blocks between `tour:start` and `tour:end` of a document. A user reads each step before pasting the next. */
  async function runTour(text: string): Promise<string> {
    const instance = start({ POSTHORN_DATA: join(folder, 'tour') })
    await instance.ready()
    const tour = text.slice(text.indexOf('<!-- tour:start -->'), text.indexOf('<!-- tour:end -->'))
    const script = [...tour.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block).join('sleep 6\n')
    expect(script).to.include('curl')
    // A step that fails must not leave the receiver behind: it would keep the pipe of its output open.
    return sh(`trap 'kill \${RECEIVER:-} \${RELAY:-} 2>/dev/null || true' EXIT\n${script}`, {
      API: api(),
      PLATFORM_URL: /PostgreSQL\s+(\S+)/.exec(instance.output())![1]!,
      OPERATOR_KEY: /Operator key\s+(\S+)/.exec(instance.output())![1]!,
      RECEIVER_PORT: String(await freePort()),
    })
  }

  it("makes the README's tour true", async () => {
    const shown = await runTour(README)
    expect(shown.match(/handled [-\w]+: customer:created/g)).to.have.length(2)
    expect(shown)
      .to.match(/"failureCode":"connect\w+"/)
      .and.match(/"closedAt":null/)
      .and.match(/"state":"completed"/)
      .and.match(/"closedAt":"\d{4}-/)
  })

  it('makes the tour of docs/integrate.md true: from nothing to verified webhooks, of an outbox too, and gone again', async function () {
    if (findOnPath('psql', process.env) === null) return this.skip()
    const shown = await runTour(INTEGRATE)
    // Of the event that was published, of the row that was committed, and not of the one that was rolled back.
    expect(shown.match(/handled [-\w]+: customer:created/g)).to.have.length(2)
    expect(shown)
      .to.match(/\/developer#portal=\S{20}/)
      .and.include('"relay.published"')
      .and.match(/"state":"erasing"/)
  })
})
