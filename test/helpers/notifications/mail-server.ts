import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { TlsOptions } from 'node:tls'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'

/** A mail as the server took it: who it was for, its bytes, and how a mail program reads them. */
export type TakenMail = {
  envelope: { from: string; to: string[] }
  raw: string
  parsed: Email
  isSecure: boolean
  user: string | null
}

/** The refusals of a well-behaved server. */
type Refusal = { at: 'mail' | 'rcpt' | 'data'; code: number; text?: string }

export type MailServer = {
  host: string
  port: number
  mails: TakenMail[]
  connections(): number
  /** Mails that were read and are not taken yet. */
  thinking(): number
  /** Refuses from now on; null takes mails again. */
  refuse(refusal: Refusal | null): void
  close(): Promise<void>
}

type Options = {
  tls?: 'none' | 'starttls' | 'implicit'
  /** Certificate and the like, for `starttls` and `implicit`. */
  tlsOptions?: TlsOptions
  auth?: { user: string; password: string }
  /** How long it thinks about each mail before it takes it. */
  delayMs?: number
  /** It takes no mail before this. */
  until?: Promise<unknown>
}

/** A real mail server on a free port, by independent code. */
export async function createMailServer(options: Options = {}): Promise<MailServer> {
  const { tls = 'none', tlsOptions = {}, auth, delayMs = 0, until } = options
  const mails: TakenMail[] = []
  let refusal: Refusal | null = null
  let connections = 0
  let thinking = 0

  const refusalAt = (at: Refusal['at']): Error | null => {
    if (refusal?.at !== at) return null
    return Object.assign(new Error(refusal.text ?? 'not today'), { responseCode: refusal.code })
  }
  const take = async (stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> => {
    const bytes = await buffer(stream)
    thinking++
    await Promise.all([delay(delayMs), until])
    thinking--
    const { mailFrom, rcptTo } = session.envelope
    const from = mailFrom === false ? '' : mailFrom.address
    const error = refusalAt('data')
    if (error !== null) throw error
    mails.push({
      envelope: { from, to: rcptTo.map(({ address }) => address) },
      raw: bytes.toString(),
      parsed: await PostalMime.parse(bytes),
      isSecure: session.secure,
      user: (session.user as string | undefined) ?? null,
    })
  }

  const server = new SMTPServer({
    ...tlsOptions,
    secure: tls === 'implicit',
    disabledCommands: [...(tls === 'starttls' ? [] : ['STARTTLS']), ...(auth === undefined ? ['AUTH'] : [])],
    allowInsecureAuth: true,
    authOptional: auth === undefined,
    disableReverseLookup: true,
    closeTimeout: 1,
    onConnect(_session, done) {
      connections += 1
      done()
    },
    onAuth({ username = '', password }, _session, done) {
      if (username === auth?.user && password === auth.password) done(null, { user: username })
      else done(Object.assign(new Error(`wrong password ${String(password)}`), { responseCode: 535 }))
    },
    onMailFrom: (_address, _session, done) => done(refusalAt('mail')),
    onRcptTo: (_address, _session, done) => done(refusalAt('rcpt')),
    onData(stream, session, done) {
      take(stream, session).then(
        () => done(),
        (error: unknown) => done(error as Error),
      )
    },
  })
  // Clients that break a handshake off are what some tests are about.
  server.on('error', () => undefined)
  const listening = server.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  return {
    host: tls === 'none' ? '127.0.0.1' : 'localhost',
    port: (listening.address() as AddressInfo).port,
    mails,
    connections: () => connections,
    thinking: () => thinking,
    refuse: (next) => (refusal = next),
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}

/** Where in a session a rude server shows it; `message` is the dot at the end of the mail. */
export type Stage = 'greeting' | 'EHLO' | 'STARTTLS' | 'AUTH' | 'MAIL' | 'RCPT' | 'DATA' | 'message' | 'RSET'

/** A reply of its own, to disconnect, to reset the connection, to stay silent, or to send without an end. */
export type Rudeness = `${number}${' ' | '-'}${string}` | 'close' | 'reset' | 'silence' | 'drip'

/** `null` for the usual reply. Both count from 1: the connection, and the mail on it. */
export type Manners = (stage: Stage, turn: { connection: number; mail: number }) => Rudeness | null

export type RudeMailServer = {
  host: string
  port: number
  /** Every mail that came as far as its closing dot, whatever the answer: any of them may have been delivered. */
  read: string[]
  connections(): number
  /** Closes every connection. */
  hangUp(): void
  close(): Promise<void>
}

const DRIP_MS = 20
const POLITE: Record<Stage, string> = {
  greeting: '220 rude.test ESMTP',
  EHLO: '250-rude.test\r\n250-AUTH PLAIN\r\n250 8BITMIME',
  STARTTLS: '502 no such command',
  AUTH: '235 welcome',
  MAIL: '250 sender taken',
  RCPT: '250 recipient taken',
  DATA: '354 go on',
  message: '250 message taken',
  RSET: '250 forgotten',
}

/** A mail server that misbehaves at any stage, which a real one cannot do on request. */
export async function createRudeMailServer(
  manners: Manners,
  options: { pipelining?: boolean } = {},
): Promise<RudeMailServer> {
  const read: string[] = []
  const sockets = new Set<Socket>()
  let connections = 0

  const answer = (socket: Socket, rudeness: Rudeness | null, usual: string): void => {
    switch (rudeness) {
      case null:
        socket.write(`${usual}\r\n`)
        return
      case 'close':
        socket.end()
        return
      case 'reset':
        socket.resetAndDestroy()
        return
      case 'silence':
        return
      case 'drip': {
        const timer = setInterval(() => socket.write('250-and another thing\r\n'), DRIP_MS)
        socket.on('close', () => clearInterval(timer))
        return
      }
      default:
        socket.write(`${rudeness}\r\n`)
    }
  }

  const server = createServer({ noDelay: true }, (socket) => {
    connections += 1
    const turn = { connection: connections, mail: 0 }
    let rest = ''
    let isMessage = false
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
    const reply = (stage: Stage): void => {
      const usual =
        stage === 'EHLO' && options.pipelining ? `250-PIPELINING\r\n${POLITE.EHLO}` : POLITE[stage]
      answer(socket, manners(stage, { ...turn }), usual)
    }
    const readData = (): void => {
      const isPolite = (at: Stage): boolean => manners(at, { ...turn }) === null
      const hasRecipient = isPolite('MAIL') && isPolite('RCPT')
      isMessage = hasRecipient && isPolite('DATA')
      // A client that sent all its commands in one go learns here that they led nowhere.
      if (hasRecipient) reply('DATA')
      else socket.write('503 nobody to send to\r\n')
    }
    const next = (): boolean => {
      const end = isMessage ? '\r\n.\r\n' : '\r\n'
      const at = rest.indexOf(end)
      if (at === -1) return false
      const taken = rest.slice(0, at)
      rest = rest.slice(at + end.length)
      if (isMessage) {
        isMessage = false
        read.push(taken)
        reply('message')
        return true
      }
      const verb = taken.slice(0, 4).trim().toUpperCase()
      if (verb === 'QUIT') socket.end('221 bye\r\n')
      if (verb === 'MAIL') turn.mail += 1
      const stage = verb === 'STAR' ? 'STARTTLS' : (verb as Stage)
      if (stage === 'DATA') readData()
      else if (stage in POLITE) reply(stage)
      return true
    }
    socket.on('data', (chunk) => {
      rest += chunk.toString('latin1')
      while (next());
    })
    reply('greeting')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const hangUp = (): void => sockets.forEach((socket) => socket.destroy())
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    read,
    connections: () => connections,
    hangUp,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        hangUp()
      }),
  }
}
