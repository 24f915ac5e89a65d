import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import PostalMime from 'postal-mime'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { visibleText } from '../process/visible-text.ts'
import { openMailFolder, type Mail } from './mail-folder.ts'

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
