import { createMailer } from '../../../../src/incidents/notifications/mailer.ts'
import type { Mailer, MailerOptions, OutgoingMail } from '../../../../src/incidents/notifications/mailer.ts'

/** For servers that never come to an end: ten of these and the try is over. */
export const SHORT_TIMEOUT_MS = 60

const mailers: Mailer[] = []

export function createTestMailer(
  server: { host: string; port: number },
  options: Partial<MailerOptions> = {},
): Mailer {
  const mailer = createMailer({
    host: server.host,
    port: server.port,
    tls: 'none',
    user: '',
    password: '',
    from: 'posthorn@sender.test',
    fromName: 'Posthorn',
    connections: 1,
    timeoutMs: 10_000,
    ...options,
  })
  mailers.push(mailer)
  return mailer
}

/** For `afterEach`, before the servers are closed. */
export async function closeMailers(): Promise<void> {
  await Promise.all(mailers.splice(0).map((mailer) => mailer.close()))
}

export function mail(changes: Partial<OutgoingMail> = {}): OutgoingMail {
  return {
    id: 'inc-01.1.02',
    to: { name: 'An', address: 'an@example.com' },
    subject: 'Hello',
    text: 'as text\n',
    html: '<p>as HTML</p>\n',
    ...changes,
  }
}
