import type { Readable } from 'node:stream'
import { rootCertificates } from 'node:tls'
import { createTransport } from 'nodemailer'
import type { NodemailerError, SMTPPoolOptions } from 'nodemailer'
import { isMailAddress } from '../domain/mail-address.ts'
import type { SendOutcome } from './send-outcome.ts'
import { singleLine } from './single-line.ts'

/** A message to one person. `id` becomes the Message-ID, the same whenever the message is sent. */
export type OutgoingMail = {
  id: string
  to: { name?: string | null; address: string }
  subject: string
  text: string
  html: string
}

export type Mailer = {
  /**
   * One try to send one message. Never throws; takes ten times `timeoutMs` at most, the wait for a free connection
   * included. Tells nothing about a message that bounces later.
   */
  send(mail: OutgoingMail): Promise<SendOutcome>
  /**
   * Resolves when the tries under way have ended. Those of which no byte has left yet are given up, and what is sent
   * afterwards is refused.
   */
  close(): Promise<void>
}

export type MailerOptions = {
  host: string
  port: number
  /** `starttls` refuses a server that does not offer it; `none` sends in clear even to one that does. */
  tls: 'starttls' | 'implicit' | 'none'
  /** '' where the server asks for no user name. */
  user: string
  password: string
  from: string
  /** Connections at most; they are kept for a while and used again. */
  connections: number
  /** Bound on setting a connection up, greeting and TLS included, and on each answer of the server. */
  timeoutMs: number
  /** PEM certificates trusted besides the usual roots; for tests. */
  ca?: string
}

// A bound on servers that drip: with sign-in, a message takes ten answers.
const STEPS_OF_A_SEND = 10
const MAX_ERROR_LENGTH = 200
const MAX_NAME_LENGTH = 100
const MAX_SUBJECT_LENGTH = 200

/** What nodemailer's codes mean here. */
const MEANINGS: Readonly<Record<string, string>> = {
  EAUTH: 'the mail server refused to sign us in',
  ECONNECTION: 'the mail server closed the connection',
  EDNS: 'the address of the mail server could not be found',
  EENVELOPE: 'the mail server refused the mail',
  EMESSAGE: 'the mail server refused the message',
  ESOCKET: 'the connection to the mail server failed',
  ETIMEDOUT: 'the mail server did not answer in time',
  ETLS: 'no secure connection to the mail server could be set up',
  EABORT: 'the mail server did not take the message in time',
}

/** Sends mail over SMTP, each message to one recipient. Writes nothing to the log. */
export function createMailer(options: MailerOptions): Mailer {
  const transport = createTransport(transportOptions(options))
  // What concerns a message comes with its send; without a listener the rest would end the process.
  transport.on('error', () => undefined)
  const domain = options.from.slice(options.from.lastIndexOf('@') + 1)
  const underWay = new Set<Promise<unknown>>()
  const abandons = new Set<() => void>()
  let isClosing = false
  // The streams of each message that connections were given, by the signal that belongs to the message.
  const streams = new WeakMap<AbortSignal, Readable[]>()

  transport.use('stream', (mail, done) => {
    const { signal } = mail.data
    mail.message.processFunc((stream) => {
      if (signal) streams.get(signal)?.push(stream)
      return stream
    })
    done()
  })

  function send(mail: OutgoingMail): Promise<SendOutcome> {
    if (isClosing) return Promise.resolve({ state: 'refused', error: 'Posthorn is shutting down' })
    const sending = sendOnce(mail).finally(() => underWay.delete(sending))
    underWay.add(sending)
    return sending
  }

  async function sendOnce({ id, to, subject, text, html }: OutgoingMail): Promise<SendOutcome> {
    // Also what keeps a second recipient out: nodemailer would read one from `a@x, b@y` or `g: b@y;`.
    if (!isMailAddress(to.address)) return { state: 'failed', error: 'this is not a plain e-mail address' }
    const stop = new AbortController()
    const given: Readable[] = []
    streams.set(stop.signal, given)
    const timer = setTimeout(() => stop.abort(), STEPS_OF_A_SEND * options.timeoutMs)
    const isBegun = (): boolean => given.some((stream) => stream.readableDidRead)
    const abandon = (): void => {
      if (!isBegun()) stop.abort()
    }
    abandons.add(abandon)
    try {
      await transport.sendMail({
        from: { name: 'Posthorn', address: options.from },
        to: { name: singleLine(to.name ?? '', MAX_NAME_LENGTH), address: to.address },
        envelope: { from: { address: options.from, name: '' }, to: [{ address: to.address, name: '' }] },
        messageId: `<${id}@${domain}>`,
        subject: singleLine(subject, MAX_SUBJECT_LENGTH),
        text,
        html,
        // RFC 3834, and the same for Exchange: no answer of a machine comes back.
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        signal: stop.signal,
      })
      return { state: 'sent' }
    } catch (error) {
      return outcomeOf(error, isBegun(), options)
    } finally {
      abandons.delete(abandon)
      clearTimeout(timer)
    }
  }

  async function close(): Promise<void> {
    isClosing = true
    for (const abandon of abandons) abandon()
    await Promise.all(underWay)
    transport.close()
  }

  return { send, close }
}

function transportOptions(options: MailerOptions): SMTPPoolOptions & { pool: true } {
  const { host, port, tls, user, password, connections, timeoutMs, ca } = options
  return {
    pool: true,
    maxConnections: connections,
    // What a connection that has gone stale did not begin to send goes out over another one.
    maxRequeues: 2,
    // Before `socketTimeout`, so that we take leave of the server instead of hanging up on it.
    idleTimeout: timeoutMs / 2,
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    tls: {
      minVersion: 'TLSv1.2',
      // Said aloud so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment changes nothing here.
      rejectUnauthorized: true,
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    },
    ...(user === '' ? {} : { auth: { user, pass: password } }),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

/**
 * What became of a message that nodemailer reports as not sent. Its errors alone cannot tell a connection that was
 * lost before the message from one lost behind it, so `wasBegun` says whether a connection took even one byte of it:
 * without any, no server can have accepted it. Afterwards, only the server's own answer to the message proves that.
 */
function outcomeOf(thrown: unknown, wasBegun: boolean, options: MailerOptions): SendOutcome {
  const failure: NodemailerError = thrown instanceof Error ? thrown : new Error('not an error')
  const error = describe(failure, options)
  const { code, command, responseCode } = failure
  const isAboutMessage = code === 'EMESSAGE' && command === 'DATA'
  const reply = replyClass(responseCode)
  if (wasBegun && !(isAboutMessage && reply !== null)) return { state: 'unknown', error }
  // 530 asks for a sign-in or for TLS first (RFC 4954, RFC 3207): it is about the connection.
  const isForGood = (isAboutMessage || code === 'EENVELOPE') && reply === 5 && responseCode !== 530
  return { state: isForGood ? 'failed' : 'refused', error }
}

/** 4: not now. 5: never. null: no refusal. */
function replyClass(responseCode: number | undefined): 4 | 5 | null {
  if (responseCode === undefined || responseCode < 400 || responseCode > 599) return null
  return responseCode < 500 ? 4 : 5
}

/** Our words, and the server's except where they could repeat the password. */
function describe(failure: NodemailerError, { user, password }: MailerOptions): string {
  const { code = '', response = '', responseCode, originalCode = '' } = failure
  const meaning = MEANINGS[code] ?? 'the message could not be handed to the mail server'
  const detail = code === 'EAUTH' ? String(responseCode ?? '') : response || originalCode
  const secrets = [password, base64(password), base64(`\0${user}\0${password}`)]
  const isTelling = detail !== '' && (password === '' || !secrets.some((secret) => detail.includes(secret)))
  return singleLine(isTelling ? `${meaning}: ${detail}` : meaning, MAX_ERROR_LENGTH)
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
