import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { verify } from '@octokit/webhooks-methods'
import { expect } from 'chai'
import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import { freePort } from '../../../src/free-port.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { type Listener, runCli, startListen } from '../../helpers/cli/run-cli.ts'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from '../../helpers/deliveries/attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { type Answer, createReceiver, type Receiver } from '../../helpers/receivers/receiver.ts'

const RECEIVER_SAMPLE = fileURLToPath(new URL('../../../docs/verify/receiver.mjs', import.meta.url))

describe('posthorn listen', () => {
  const database = useDatabase()
  let api: TestApi
  let port: number
  let member: TestMember
  let receiver: Receiver
  let answer: Answer
  let listeners: Listener[] = []

  before(async () => {
    port = await freePort()
  })
  beforeEach(async () => {
    answer = () => 200
    receiver = await createReceiver({ answer: (...args) => answer(...args) })
    await startApi()
    member = await createMember(database.dataSource)
  })
  afterEach(async () => {
    for (const listener of listeners) listener.kill('SIGKILL')
    await Promise.all(listeners.map(({ ended }) => ended))
    // No key is in anything that was printed.
    for (const listener of listeners)
      expect(listener.stdout() + listener.stderr()).to.not.include(member.apiKey)
    listeners = []
    await receiver.close()
    await api.close()
  })

  async function startApi(limits = { perOrganisation: 10, perProcess: 10 }): Promise<void> {
    api = await createTestApi(database.dataSource, {}, { limits, times: { rightsMs: 100 } }, port)
  }
  function listen(...args: string[]): Listener {
    const listener = startListen(args, { POSTHORN_URL: api.url, POSTHORN_KEY: member.apiKey })
    listeners.push(listener)
    return listener
  }
  const forward = (...args: string[]) => listen('--forward-to', receiver.url, ...args)

  /** Publishes an event over the API and returns its id. */
  async function publish(raw = '{"event":"customer:created","data":{"id":"cus_1"}}'): Promise<string> {
    const { status, json } = await api.call('POST', `/api/orgs/${member.organisationId}/events`, {
      apiKey: member.apiKey,
      raw,
    })
    expect(status).to.equal(202)
    return (json as { id: string }).id
  }
  /** Publishes without the API. */
  async function publishDirectly(): Promise<string> {
    await publishRow(database.dataSource, member.organisationId)
    const [{ id } = { id: '' }] = await database.dataSource.query<{ id: string }[]>(
      'SELECT id FROM event WHERE organisation_id = $1 ORDER BY sequence DESC LIMIT 1',
      [member.organisationId],
    )
    return id
  }
  const receivedIds = () => receiver.posts.map(({ headers }) => headers['x-webhook-event-id'])
  const storedBody = async (id: string) => {
    const [row] = await database.dataSource.query<{ body: Buffer }[]>(
      'SELECT body FROM event WHERE id = $1',
      [id],
    )
    return row!.body
  }

  it('forwards events that the sample receiver verifies with the printed secret', async () => {
    const receiverPort = await freePort()
    const listener = listen(
      '--events',
      'customer:created',
      '--forward-to',
      `http://localhost:${receiverPort}/hook`,
    )
    await listener.hasConnected()
    expect(listener.secret()).to.match(/^[0-9a-f]{64}$/)
    const env = { ...process.env, SECRET: listener.secret(), PORT: String(receiverPort) }
    const sample = spawn(process.execPath, [RECEIVER_SAMPLE], { env })
    try {
      let handled = ''
      sample.stdout.setEncoding('utf8').on('data', (text: string) => (handled += text))
      await eventually(() => fetch(`http://127.0.0.1:${receiverPort}/`, { method: 'POST' }))
      const id = await publish()
      await eventually(() => expect(handled).to.equal(`handled ${id}: customer:created {"id":"cus_1"}\n`))
      await eventually(() => expect(listener.events()).to.have.length(1))
      const [time, key, shownId, status, duration] = listener.events()[0]!
      expect([key, shownId, status]).to.deep.equal(['customer:created', id, '200'])
      expect(time).to.match(/^\d\d:\d\d:\d\d\.\d{3}$/)
      expect(duration).to.match(/^\d+ ms$/)
    } finally {
      await end(sample)
    }
  })

  it('sends the bytes and headers of a delivery, signed with the secret that is fixed', async () => {
    const { organisationId } = member
    await createWebhookRow(database.dataSource, { organisationId, url: receiver.url })
    const listener = forward('--secret', 'local-secret')
    await listener.hasConnected()
    expect(listener.secret()).to.equal('local-secret')
    const id = await publish('{"event":"comment:created","data":{"text":"\u2028 😀 \\ud800 \u009b","n":1.0}}')
    await eventually(() => expect(receivedIds()).to.deep.equal([id]))
    const { body, headers } = receiver.posts[0]!
    expect(body.equals(await storedBody(id))).to.equal(true)
    expect(await verify('local-secret', body.toString(), String(headers['x-webhook-signature']))).to.equal(
      true,
    )

    const dependencies = attemptDependencies(database.dataSource)
    await createAttempt(dependencies)(attemptRequest(api.started.at(-1)!), NO_SIGNALS)
    await dependencies.httpClient.close()
    const [forwarded, delivered] = receiver.posts.map(({ rawHeaders }) =>
      rawHeaders.filter((_, at) => at % 2 === 0),
    )
    expect(forwarded).to.deep.equal(delivered)
    for (const name of ['content-type', 'content-length', 'connection'])
      expect(headers[name], name).to.equal(receiver.posts[1]!.headers[name])
    expect(headers['user-agent']).to.match(/^Posthorn\/\d/)
  })

  it('resumes after a restart of the server, without a gap or a repeat, also before the first event', async () => {
    const earlier = await publishDirectly()
    const listener = forward()
    await listener.hasConnected()
    const published: string[] = []
    for (let times = 1; times <= 2; times++) {
      await api.close()
      for (let count = 0; count < 3; count++) published.push(await publishDirectly())
      await startApi()
      published.push(await publishDirectly())
      await listener.hasConnected(times + 1)
      published.push(await publishDirectly())
      await eventually(() => expect(receivedIds()).to.have.length(published.length))
    }
    expect(receivedIds()).to.deep.equal(published).and.not.include(earlier)
    expect(listener.stderr()).to.match(/^The stream \S.* Trying again in \d+\.\d s\.$/m)
  })

  it('shows a failed forward, goes on in order, and does not retry it', async () => {
    answer = (_index, post) => (post.body.includes('cus_fails') ? 500 : 204)
    const listener = forward()
    await listener.hasConnected()
    const ids = []
    for (const customer of ['cus_fails', 'cus_1', 'cus_2'])
      ids.push(await publish(`{"event":"customer:created","data":{"id":"${customer}"}}`))
    await eventually(() => expect(listener.events()).to.have.length(3))
    expect(listener.events().map(([, , id, status]) => [id, status])).to.deep.equal([
      [ids[0], '500'],
      [ids[1], '204'],
      [ids[2], '204'],
    ])
    expect(listener.events()[0]!.at(-1)).to.match(/^failed, not retried: /)
    expect(receivedIds()).to.deep.equal(ids)
    await receiver.close()
    await publish()
    await eventually(() => expect(listener.events()[3]?.[3]).to.equal('connect_refused'))
  })

  it('gives up a forward that is not answered within ten seconds, and forwards what waits behind it', async () => {
    answer = (_index, post) => (post.body.includes('cus_hangs') ? null : 200)
    const listener = forward()
    await listener.hasConnected()
    const ids = [await publish('{"event":"customer:created","data":{"id":"cus_hangs"}}')]
    for (let count = 0; count < 150; count++) ids.push(await publishDirectly())
    await eventually(() => expect(listener.events()).to.have.length(ids.length))
    const [hung, ...others] = listener.events()
    expect(hung!.slice(2, 4)).to.deep.equal([ids[0], 'timeout'])
    expect(Number.parseInt(hung![4]!)).to.be.at.least(9_900)
    expect(others.map(([, , id, status]) => `${id} ${status}`)).to.deep.equal(
      ids.slice(1).map((id) => `${id} 200`),
    )
  })

  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    it(`ends at once with exit code 0 at ${signal}, also while a forward hangs`, async () => {
      answer = () => null
      const listener = forward()
      await listener.hasConnected()
      await publish()
      await eventually(() => expect(receiver.posts).to.have.length(1))
      listener.kill(signal)
      expect(await listener.ended).to.equal(0)
      // It did not wait for the time-out of the forward.
      expect(listener.events()).to.deep.equal([])
    })
  }

  it('prints the body of each event with --print, without sending it, and shows what could control a terminal', async () => {
    const listener = listen('--print', '--events', 'comment:created')
    await listener.hasConnected()
    const id = await publish('{"event":"comment:created","data":{"text":"\u009b2J \u202e 😀"}}')
    await eventually(() => expect(listener.stdout().split('\n')).to.have.length(3))
    const [head, body, rest] = listener.stdout().split('\n')
    expect(head).to.match(new RegExp(`^\\d\\d:\\d\\d:\\d\\d\\.\\d{3}  comment:created  ${id}$`))
    expect(body).to.include('"text":"\\u009b2J \\u202e 😀"')
    expect(JSON.parse(body!)).to.deep.equal(JSON.parse((await storedBody(id)).toString()))
    expect(rest).to.equal('')
    expect(receiver.posts).to.have.length(0)
  })

  it('prints bodies beside forwarding', async () => {
    const listener = forward('--print')
    await listener.hasConnected()
    const id = await publish()
    const body = (await storedBody(id)).toString()
    await eventually(() =>
      expect(listener.stdout())
        .to.match(/ {2}200 {2}/)
        .and.include(`\n${body}\n`),
    )
    expect(receiver.posts).to.have.length(1)
  })

  describe('tells in one line why it is refused, and ends with 1', () => {
    it('by a missing permission', async () => {
      member = await createMember(database.dataSource, { permissions: ['customer:read'] })
      const listener = forward('--events', 'invoice:paid')
      expect(await listener.ended).to.equal(1)
      expect(listener.stderr().trim()).to.match(/ answers 403 missing_permission: .*invoice:read\.$/)
    })

    it('by a key that is revoked meanwhile', async () => {
      const listener = forward()
      await listener.hasConnected()
      await database.dataSource.query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [
        member.memberId,
      ])
      expect(await listener.ended).to.equal(1)
      expect(listener.stderr().trim().split('\n').at(-1)).to.match(/ answers 401 unauthenticated: /)
    })
  })

  it('names all that is wrong with its arguments at once, and says how it is used', async () => {
    const wrong = await runCli(['listen', '--api', 'nowhere', '--secret', 'short', 'stray'])
    expect(wrong).to.include({ code: 2, stdout: '' })
    expect(wrong.stderr.trim().split('\n')).to.have.length(8)
    const help = await runCli(['listen', '--help'])
    expect(help).to.include({ code: 0, stderr: '' })
    expect(help.stdout).to.match(/^Usage: posthorn listen/)
  })
})

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill()
  await exited
}
