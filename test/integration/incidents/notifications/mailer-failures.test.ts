import { expect } from 'chai'
import { createMailServer, createRudeMailServer } from '../../../helpers/notifications/mail-server.ts'
import type { Manners, Rudeness, RudeMailServer, Stage } from '../../../helpers/notifications/mail-server.ts'
import { useHeldTimeouts } from '../../../helpers/use-mock-time.ts'
import { SHORT_TIMEOUT_MS, closeMailers, createTestMailer, mail } from './mailers.ts'

/** For a server that is silent once and polite otherwise: no polite answer takes so long on a busy machine. */
const SILENCE_TIMEOUT_MS = 2_000

/** Real time between two drips never comes near it; the limit of a whole try, ten of these, passes on held time. */
const DRIP_TIMEOUT_MS = 20_000

/** What the server does, and what becomes of the mail. */
const BEFORE_THE_MESSAGE: readonly [Stage, Rudeness, 'refused' | 'failed'][] = [
  ['greeting', 'close', 'refused'],
  ['greeting', 'reset', 'refused'],
  ['greeting', 'silence', 'refused'],
  ['greeting', '421 too busy', 'refused'],
  ['greeting', '554 not you', 'refused'],
  ['EHLO', 'close', 'refused'],
  ['EHLO', 'silence', 'refused'],
  ['EHLO', 'drip', 'refused'],
  ['AUTH', '454 later', 'refused'],
  ['AUTH', '535 wrong', 'refused'],
  ['AUTH', 'close', 'refused'],
  ['AUTH', 'silence', 'refused'],
  ['MAIL', '421 closing', 'refused'],
  ['MAIL', '451 later', 'refused'],
  ['MAIL', '530 sign in first', 'refused'],
  ['MAIL', '550 no such sender', 'failed'],
  ['MAIL', 'close', 'refused'],
  ['MAIL', 'reset', 'refused'],
  ['MAIL', 'silence', 'refused'],
  ['RCPT', '421 closing', 'refused'],
  ['RCPT', '450 later', 'refused'],
  ['RCPT', '550 nobody here', 'failed'],
  ['RCPT', 'close', 'refused'],
  ['RCPT', 'silence', 'refused'],
  ['DATA', '421 closing', 'refused'],
  ['DATA', '451 later', 'refused'],
  ['DATA', '554 no', 'failed'],
  ['DATA', 'close', 'refused'],
  ['DATA', 'drip', 'refused'],
]

const BEHIND_THE_MESSAGE: readonly [Rudeness, 'refused' | 'failed' | 'unknown'][] = [
  ['421 closing', 'refused'],
  ['451 later', 'refused'],
  ['554 spam', 'failed'],
  ['354 go on', 'unknown'],
  ['close', 'unknown'],
  ['reset', 'unknown'],
  ['silence', 'unknown'],
]

/** Before the message a time-out at an earlier, polite stage has the same outcome. */
function timeoutWith(rudeness: Rudeness): { timeoutMs?: number } {
  return rudeness === 'silence' || rudeness === 'drip' ? { timeoutMs: SHORT_TIMEOUT_MS } : {}
}

describe('Mailer.send with a failing mail server', () => {
  const open: { close(): Promise<void> }[] = []

  async function start(manners: Manners, pipelining = false): Promise<RudeMailServer> {
    const server = await createRudeMailServer(manners, { pipelining })
    open.push(server)
    return server
  }

  afterEach(async () => {
    await closeMailers()
    await Promise.all(open.splice(0).map((server) => server.close()))
  })

  for (const pipelining of [false, true]) {
    describe(pipelining ? 'and takes commands in one go' : 'and takes one command at a time', () => {
      for (const [stage, rudeness, state] of BEFORE_THE_MESSAGE) {
        it(`${state}: "${rudeness}" at ${stage}, before any of the message has left`, async () => {
          const server = await start((at) => (at === stage ? rudeness : null), pipelining)
          const mailer = createTestMailer(server, { ...timeoutWith(rudeness), user: 'me', password: 'pw' })
          const outcome = await mailer.send(mail())
          expect(outcome).to.include({ state })
          expect(server.read).to.deep.equal([])
        })
      }

      for (const [rudeness, state] of BEHIND_THE_MESSAGE) {
        it(`${state}: "${rudeness}" after the message, which is not sent again`, async () => {
          const server = await start((at) => (at === 'message' ? rudeness : null), pipelining)
          const outcome = await createTestMailer(server, { timeoutMs: SILENCE_TIMEOUT_MS }).send(mail())
          expect(outcome).to.include({ state })
          expect(server.read).to.have.lengthOf(1)
        })
      }
    })
  }

  it('refused: nothing listens', async () => {
    const server = await createMailServer()
    await server.close()
    expect(await createTestMailer(server).send(mail())).to.deep.equal({
      state: 'refused',
      error: 'the connection to the mail server failed: ECONNREFUSED',
    })
  })

  it('refused: the host does not exist', async () => {
    const mailer = createTestMailer({ host: 'mail.invalid', port: 25 }, { timeoutMs: 500 })
    expect(await mailer.send(mail())).to.include({ state: 'refused' })
  })

  describe('that drips, and never ends its answer', () => {
    const timeouts = useHeldTimeouts()

    for (const [stage, state] of [
      ['EHLO', 'refused'],
      ['message', 'unknown'],
    ] as const)
      it(`${state}: after ten time-outs, where it drips at ${stage}, and no sooner`, async () => {
        let isDripping = false
        const server = await start((at) => {
          if (at !== stage) return null
          isDripping = true
          return 'drip'
        })
        const sending = createTestMailer(server, { timeoutMs: DRIP_TIMEOUT_MS }).send(mail())
        await timeouts.until(() => isDripping)
        const ended = { isSettled: false }
        void sending.then(() => (ended.isSettled = true))
        await timeouts.pass(10 * DRIP_TIMEOUT_MS - 1)
        expect(ended).to.deep.equal({ isSettled: false })
        await timeouts.pass(1)
        expect(await sending).to.include({ state })
        expect(server.read).to.have.lengthOf(stage === 'message' ? 1 : 0)
      })

    it('permits a retry for a mail that only waited for a connection', async () => {
      // No second connection comes about, so that it does not matter which of the two is given up first.
      const server = await start((at, { connection }) => {
        if (connection > 1) return 'silence'
        return at === 'message' ? 'drip' : null
      })
      const mailer = createTestMailer(server, { timeoutMs: DRIP_TIMEOUT_MS })
      const sending = Promise.all([mailer.send(mail({ id: 'a' })), mailer.send(mail({ id: 'b' }))])
      await timeouts.until(() => server.read.length === 1)
      await timeouts.pass(10 * DRIP_TIMEOUT_MS)
      expect((await sending).map(({ state }) => state)).to.deep.equal(['unknown', 'refused'])
      expect(server.read).to.have.lengthOf(1)
    })
  })

  it('sends the next mail over a connection of its own', async () => {
    const server = await start((at, { connection }) =>
      at === 'message' && connection === 1 ? 'silence' : null,
    )
    const mailer = createTestMailer(server, { timeoutMs: SILENCE_TIMEOUT_MS })
    expect(await mailer.send(mail({ id: 'a' }))).to.include({ state: 'unknown' })
    expect(await mailer.send(mail({ id: 'b' }))).to.include({ state: 'sent' })
  })

  describe('after a first successful mail', () => {
    it('sends again over a new connection when the server disconnected meanwhile', async () => {
      const server = await start(() => null)
      const mailer = createTestMailer(server)
      expect(await mailer.send(mail({ id: 'a' }))).to.include({ state: 'sent' })
      server.hangUp()
      expect(await mailer.send(mail({ id: 'b' }))).to.include({ state: 'sent' })
      expect(server.read).to.have.lengthOf(2)
      expect(server.connections()).to.equal(2)
    })

    for (const pipelining of [false, true]) {
      for (const rudeness of ['close', 'reset', 'silence'] as const) {
        it(`sends again when the reused connection is dead: "${rudeness}"${pipelining ? ', pipelined' : ''}`, async () => {
          const server = await start(
            (at, turn) => (at === 'MAIL' && turn.connection === 1 && turn.mail === 2 ? rudeness : null),
            pipelining,
          )
          const mailer = createTestMailer(server, { timeoutMs: SILENCE_TIMEOUT_MS })
          expect(await mailer.send(mail({ id: 'a' }))).to.include({ state: 'sent' })
          expect(await mailer.send(mail({ id: 'b' }))).to.include({ state: 'sent' })
          expect(server.read).to.have.lengthOf(2)
          expect(server.connections()).to.equal(2)
        })

        it(`sends nothing twice when it dies after the message: "${rudeness}"${pipelining ? ', pipelined' : ''}`, async () => {
          const server = await start(
            (at, turn) => (at === 'message' && turn.connection === 1 && turn.mail === 2 ? rudeness : null),
            pipelining,
          )
          const mailer = createTestMailer(server, { timeoutMs: SILENCE_TIMEOUT_MS })
          expect(await mailer.send(mail({ id: 'a' }))).to.include({ state: 'sent' })
          expect(await mailer.send(mail({ id: 'b' }))).to.include({ state: 'unknown' })
          expect(server.read).to.have.lengthOf(2)
        })
      }
    }

    it('permits a retry for a mail that a reused connection answers with 421', async () => {
      const server = await start((at, turn) =>
        at === 'MAIL' && turn.connection === 1 && turn.mail === 2 ? '421 idle for too long' : null,
      )
      const mailer = createTestMailer(server)
      const states: string[] = []
      for (const id of ['a', 'b', 'b']) states.push((await mailer.send(mail({ id }))).state)
      expect(states).to.deep.equal(['sent', 'refused', 'sent'])
      expect(server.read).to.have.lengthOf(2)
    })
  })

  it('describes the error in one short line', async () => {
    const server = await start((at) =>
      at === 'RCPT' ? `550-first\r\n550 \x1b[31mred\x00 ${'x'.repeat(900)}` : null,
    )
    const outcome = await createTestMailer(server).send(mail())
    const error = outcome.state === 'sent' ? '' : outcome.error
    expect(error).to.match(/^the mail server refused the mail: 550-first 550 \[31mred x+…$/)
    expect(error).to.have.lengthOf(200)
  })
})
