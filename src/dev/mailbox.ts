import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import PostalMime from 'postal-mime'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { visibleText } from '../process/visible-text.ts'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { keepInFile } from './data-folder.ts'

/** A mail server to try notifications on: it takes every mail, and passes none on. */
export type Mailbox = {
  /** Of 127.0.0.1, without TLS and without a password. */
  port: number
  /** The newest 200, newest first; those of earlier starts too. */
  mails(): Mail[]
  stop(): Promise<void>
}

/** Far more than a notification has. */
const MAX_MAIL_BYTES = 1_000_000

/** The time that an open connection of a sender may delay the stop. */
const CLOSE_TIMEOUT_MS = 1_000

/** Starts an SMTP server on a free port of 127.0.0.1. It stores mails in `folder`, and prints one line for each. */
export async function startMailbox(options: {
  folder: string
  print: (line: string) => void
}): Promise<Mailbox> {
  const folder = openMailFolder(options.folder)
  const take = async (stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> => {
    const source = await readUpToLimit(stream)
    // The server itself refuses it then.
    if (source === null) return
    const to = session.envelope.rcptTo.map(({ address }) => address).join(', ')
    const mail = { to, ...(await parse(source)), receivedAt: new Date().toISOString() }
    folder.keep(mail)
    options.print(visibleText(`Mail to ${to}: ${mail.subject}`))
  }
  const server = new SMTPServer({
    size: MAX_MAIL_BYTES,
    rejectOversized: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: CLOSE_TIMEOUT_MS,
    onData(stream, session, answer) {
      take(stream, session).then(
        () => answer(),
        () => answer(new Error('the mail could not be kept')),
      )
    },
  })
  // Where a connection's trouble arrives; without a listener it would end the process.
  server.on('error', () => undefined)
  const listening = server.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  return {
    port: (listening.address() as AddressInfo).port,
    mails: () => folder.newestFirst(),
    stop: () => new Promise((resolve) => server.close(resolve)),
  }
}

/** Returns the whole mail, or null for one above the limit, which is read to its end but not buffered. */
async function readUpToLimit(stream: SMTPServerDataStream): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (!stream.sizeExceeded) chunks.push(chunk)
  }
  return stream.sizeExceeded ? null : Buffer.concat(chunks)
}

async function parse(source: Buffer): Promise<Pick<Mail, 'subject' | 'text' | 'html'>> {
  try {
    const { subject = '', text = '', html = null } = await PostalMime.parse(source)
    return { subject, text, html }
  } catch {
    // A mail that cannot be parsed is shown as it is.
    return { subject: '(a mail that cannot be parsed)', text: source.toString('utf8'), html: null }
  }
}

/** A mail as the mailbox shows it: envelope recipient, text part, HTML part if any, ISO 8601 UTC time of arrival. */
export type Mail = { to: string; subject: string; text: string; html: string | null; receivedAt: string }

const MAX_MAILS = 200

/** Names count up, so that they sort by arrival even when the clock is set back. */
const NAME = /^\d{12}\.json$/

/**
 * Mails as one JSON file each. Keeps the newest 200; skips a file that contains no mail.
 */
export function openMailFolder(folder: string) {
  const names = (): string[] => {
    // Each time: removing the folder empties the mailbox while it runs.
    mkdirSync(folder, { recursive: true })
    return readdirSync(folder)
      .filter((name) => NAME.test(name))
      .sort()
  }
  let latest = Number.parseInt(names().at(-1) ?? '0', 10)
  return {
    keep(mail: Mail): void {
      const existing = names()
      latest += 1
      keepInFile(join(folder, `${String(latest).padStart(12, '0')}.json`), JSON.stringify(mail))
      const surplus = existing.slice(0, Math.max(0, existing.length + 1 - MAX_MAILS))
      for (const name of surplus) rmSync(join(folder, name), { force: true, recursive: true })
    },
    newestFirst: (): Mail[] =>
      names()
        .reverse()
        .flatMap((name) => readMail(join(folder, name)) ?? []),
  }
}

function readMail(file: string): Mail | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return isMail(value) ? value : null
  } catch {
    return null
  }
}

function isMail(value: unknown): value is Mail {
  if (typeof value !== 'object' || value === null) return false
  const { to, subject, text, html, receivedAt } = value as Partial<Record<keyof Mail, unknown>>
  const isText = [to, subject, text, receivedAt].every((field) => typeof field === 'string')
  return isText && (html === null || typeof html === 'string')
}
