import type { Config } from '../config/load.ts'
import type { Logger } from '../observability/logger.ts'
import { createSendLimiter, type Channels } from '../incidents/notifications/send-due.ts'
import { createMailer } from '../incidents/notifications/mailer.ts'
import { composeMail, composePush } from '../incidents/notifications/mail-text.ts'
import { createPusher } from '../incidents/notifications/push.ts'
import type { HttpClient } from '../outbound/http-client.ts'

export type Notifications = {
  channels: Channels
  /** The key that browsers subscribe with; null when push is not configured. */
  vapidPublicKey: string | null
  warnOfMissingChannels(): void
  close(): Promise<void>
}

/** The messages that may wait in this process, and for how long; each of their incidents takes a slot meanwhile. */
const QUEUE_LIMITS = { queue: 50, waitMs: 5_000 }

/** Incidents are few and their mails short; more connections would only strain the mail server. */
const SMTP_CONNECTIONS = 2

/** For each step of a mail; mail servers may delay their greeting on purpose. */
const SMTP_TIMEOUT_MS = 30_000

const CONCURRENT_PUSHES = 10

/** Creates the configured channels for notifications of incidents. */
export function createNotifications(config: Config, httpClient: HttpClient, logger: Logger): Notifications {
  const mailer = config.smtpHost === '' ? null : createMailer(mailerOptions(config, SMTP_TIMEOUT_MS))
  const pusher =
    config.vapidPrivateKey === ''
      ? null
      : createPusher({ privateKey: config.vapidPrivateKey, subject: pushSubject(config), httpClient })
  const texts = {
    brandName: config.brandName,
    publicUrl: config.publicUrl,
    warn: (reason: string) => logger.warn({ event: 'notification.time_zone_unknown', reason }),
  }
  return {
    channels: {
      email:
        mailer === null
          ? null
          : {
              limiter: createSendLimiter({ ...QUEUE_LIMITS, slots: SMTP_CONNECTIONS }),
              send: (notice, { id, address, name }) => {
                const to = { name, address }
                const messageId = `inc-${notice.incidentId}.${notice.kind}.${id}`
                return mailer.send({ id: messageId, to, ...composeMail(notice, texts) })
              },
            },
      push:
        pusher === null
          ? null
          : {
              limiter: createSendLimiter({ ...QUEUE_LIMITS, slots: CONCURRENT_PUSHES }),
              send: (notice, subscription) =>
                pusher.send(subscription, composePush(notice, texts), { topic: notice.incidentId }),
            },
    },
    vapidPublicKey: pusher?.publicKey ?? null,
    warnOfMissingChannels() {
      if (mailer === null)
        logger.warn(
          { event: 'notification.mail_not_configured' },
          'SMTP_HOST is not set: no mail is sent about failing webhooks',
        )
    },
    async close() {
      await mailer?.close()
    },
  }
}

/** Where push services reach the operator (RFC 8292): the public address of this service, or the sender of its mails. */
export function pushSubject({ publicUrl, smtpFrom }: Pick<Config, 'publicUrl' | 'smtpFrom'>): string {
  return publicUrl.startsWith('https:') ? publicUrl : `mailto:${smtpFrom}`
}

export const MAILER_SETTINGS = [
  'smtpHost',
  'smtpPort',
  'smtpTls',
  'smtpUser',
  'smtpPassword',
  'smtpFrom',
  'brandName',
] as const

/** The options of the mailer. `timeoutMs` is for each step. */
export function mailerOptions(config: Pick<Config, (typeof MAILER_SETTINGS)[number]>, timeoutMs: number) {
  return {
    host: config.smtpHost,
    port: config.smtpPort,
    tls: config.smtpTls,
    user: config.smtpUser,
    password: config.smtpPassword,
    from: config.smtpFrom,
    fromName: config.brandName,
    connections: SMTP_CONNECTIONS,
    timeoutMs,
  }
}
