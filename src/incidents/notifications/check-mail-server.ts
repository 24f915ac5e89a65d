import { createTransport, type NodemailerError } from 'nodemailer'
import { describeMailFailure, transportOptions, type MailerOptions } from './mailer.ts'

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

function failedStep({ code }: NodemailerError): MailServerProblem['failed'] {
  if (code === 'EAUTH') return 'login'
  return code === 'ETLS' ? 'tls' : 'connection'
}
