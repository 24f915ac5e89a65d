import type { Readable } from 'node:stream'
import { rootCertificates } from 'node:tls'
import { createTransport, type NodemailerError, type SMTPPoolOptions } from 'nodemailer'
import { isMailAddress, singleLine } from '../../domain/text-rules.ts'
import type { SendOutcome } from './mail-text.ts'

/** A message to one recipient. `id` becomes the Message-ID, which stays the same when the message is sent again. */
export type OutgoingMail = {
  id: string
  to: { name?: string | null; address: string }
  subject: string
  text: string
  html: string
}

export type Mailer = {
  /**
   * Tries once to send a message. Never throws; takes ten times `timeoutMs` at most, with the wait for a free connection.
   * A message that bounces later counts as sent.
   */
  send(mail: OutgoingMail): Promise<SendOutcome>
  /** Aborts messages of which no byte was sent, refuses new ones, and resolves when those in flight have ended. */
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
  fromName: string
  /** The size of the connection pool. */
  connections: number
  /** Limits connecting, with greeting and TLS, and each answer of the server. */
  timeoutMs: number
  /** PEM certificates that are trusted in addition to the usual roots; for tests. */
  ca?: string
}

/** Answers of the server to one message with sign-in; bounds the whole try against a slow server. */
const MAX_ANSWERS_PER_MESSAGE = 10
const MAX_ERROR_LENGTH = 200
const MAX_NAME_LENGTH = 100
const MAX_SUBJECT_LENGTH = 200

/** Texts for nodemailer's codes. */
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

/** Creates a mailer over SMTP that sends each message to one recipient and logs nothing. */
export function createMailer(options: MailerOptions): Mailer {
  const transport = createTransport(transportOptions(options))
  // Errors of a message come with its send; without a listener all others would end the process.
  transport.on('error', () => undefined)
  const domain = options.from.slice(options.from.lastIndexOf('@') + 1)
  const inFlight = new Set<Promise<unknown>>()
  const abortsIfUnsent = new Set<() => void>()
  let isClosing = false
  // The streams of each message that were given to a connection, by the signal of the message.
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
    const sending = sendOnce(mail).finally(() => inFlight.delete(sending))
    inFlight.add(sending)
    return sending
  }

  async function sendOnce({ id, to, subject, text, html }: OutgoingMail): Promise<SendOutcome> {
    // Also prevents a second recipient: nodemailer would parse one from `a@x, b@y` or `g: b@y;`.
    if (!isMailAddress(to.address)) return { state: 'failed', error: 'this is not a plain e-mail address' }
    const controller = new AbortController()
    const given: Readable[] = []
    streams.set(controller.signal, given)
    const timer = setTimeout(() => controller.abort(), MAX_ANSWERS_PER_MESSAGE * options.timeoutMs)
    const wasBegun = (): boolean => given.some((stream) => stream.readableDidRead)
    const abortIfUnsent = (): void => {
      if (!wasBegun()) controller.abort()
    }
    abortsIfUnsent.add(abortIfUnsent)
    try {
      await transport.sendMail({
        from: { name: options.fromName, address: options.from },
        to: { name: singleLine(to.name ?? '', MAX_NAME_LENGTH), address: to.address },
        envelope: { from: { address: options.from, name: '' }, to: [{ address: to.address, name: '' }] },
        messageId: `<${id}@${domain}>`,
        subject: singleLine(subject, MAX_SUBJECT_LENGTH),
        text,
        html,
        // RFC 3834, and its equivalent for Exchange: prevents automatic replies.
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        signal: controller.signal,
      })
      return { state: 'sent' }
    } catch (error) {
      return outcomeOf(error, wasBegun(), options)
    } finally {
      abortsIfUnsent.delete(abortIfUnsent)
      clearTimeout(timer)
    }
  }

  async function close(): Promise<void> {
    isClosing = true
    for (const abortIfUnsent of abortsIfUnsent) abortIfUnsent()
    await Promise.all(inFlight)
    transport.close()
  }

  return { send, close }
}

/** What nodemailer is given: the same for mails and for the check of the server. */
function transportOptions(options: MailerOptions): SMTPPoolOptions & { pool: true } {
  const { host, port, tls, user, password, connections, timeoutMs, ca } = options
  return {
    pool: true,
    maxConnections: connections,
    // A message that a stale connection did not begin to send goes out over another one.
    maxRequeues: 2,
    // Shorter than `socketTimeout`, so that an idle connection ends with QUIT.
    idleTimeout: timeoutMs / 2,
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    tls: {
      minVersion: 'TLSv1.2',
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 in the environment has no effect here.
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
 * Decides the outcome of a message that nodemailer reports as not sent. Its errors do not distinguish a connection that
 * was lost before the message from one lost after it. `wasBegun`: a connection took at least one byte of the message.
 * Without that, no server can have accepted it; with it, only the server's refusal of the message proves as much.
 */
function outcomeOf(thrown: unknown, wasBegun: boolean, options: MailerOptions): SendOutcome {
  const failure: NodemailerError = thrown instanceof Error ? thrown : new Error('not an error')
  const error = describeMailFailure(failure, options)
  const { code, command, responseCode } = failure
  const isAboutMessage = code === 'EMESSAGE' && command === 'DATA'
  const reply = replyClass(responseCode)
  if (wasBegun && !(isAboutMessage && reply !== null)) return { state: 'unknown', error }
  // 530 requires sign-in or TLS first (RFC 4954, RFC 3207): it is about the connection.
  const isPermanent = (isAboutMessage || code === 'EENVELOPE') && reply === 5 && responseCode !== 530
  return { state: isPermanent ? 'failed' : 'refused', error }
}

/** 4: temporary refusal. 5: permanent refusal. null: none. */
function replyClass(responseCode: number | undefined): 4 | 5 | null {
  if (responseCode === undefined || responseCode < 400 || responseCode > 599) return null
  return responseCode < 500 ? 4 : 5
}

/** Describes a failure, with the server's text except where it could contain the password. */
function describeMailFailure(failure: NodemailerError, { user, password }: MailerOptions): string {
  const { code = '', response = '', responseCode, originalCode = '' } = failure
  const meaning = MEANINGS[code] ?? 'the message could not be handed to the mail server'
  const detail = code === 'EAUTH' ? String(responseCode ?? '') : response || originalCode
  const secrets = [password, base64(password), base64(`\0${user}\0${password}`)]
  const isShown = detail !== '' && (password === '' || !secrets.some((secret) => detail.includes(secret)))
  return singleLine(isShown ? `${meaning}: ${detail}` : meaning, MAX_ERROR_LENGTH)
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** What failed: reaching the server, setting up TLS, or signing in. `error` is text without a secret. */
export type MailServerProblem = { failed: 'connection' | 'tls' | 'login'; error: string }

/**
 * Connects to the mail server as the mailer does, with TLS and sign-in, and sends no mail. Returns null when the server
 * would take one. Never throws; each step takes `timeoutMs` at most.
 */
export async function checkMailServer(options: MailerOptions): Promise<MailServerProblem | null> {
  const transport = createTransport(transportOptions(options))
  transport.on('error', () => undefined)
  try {
    await transport.verify()
    return null
  } catch (thrown) {
    const failure: NodemailerError = thrown instanceof Error ? thrown : new Error('not an error')
    return { failed: failedStep(failure), error: describeMailFailure(failure, options) }
  } finally {
    transport.close()
  }
}

function failedStep({ code, originalCode = '' }: NodemailerError): MailServerProblem['failed'] {
  if (code === 'EAUTH') return 'login'
  return code === 'ETLS' || originalCode.startsWith('ERR_SSL_') ? 'tls' : 'connection'
}
