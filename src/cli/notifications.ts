import type { Config } from '../config.ts'
import type { Logger } from '../logger.ts'
import { createAdmission } from '../notifications/admission.ts'
import { createMailer } from '../notifications/mailer.ts'
import { composeMail, composePush } from '../notifications/mail-text.ts'
import { createPusher } from '../notifications/push.ts'
import type { Channels } from '../notifications/send-due.ts'
import type { HttpClient } from '../outbound/http-client.ts'

export type Notifications = {
  channels: Channels
  /** What browsers subscribe with; null where push is not set up. */
  vapidPublicKey: string | null
  warnOfMissingChannels(): void
  close(): Promise<void>
}

/** Messages that may wait for their turn in this process, and how long: their incidents hold a slot each meanwhile. */
const WAITING = { queue: 50, waitMs: 5_000 }

const CONCURRENT_PUSHES = 10

/** The ways in which people are told of incidents, as far as they are configured. */
export function createNotifications(config: Config, httpClient: HttpClient, logger: Logger): Notifications {
  const mailer = config.smtpHost === '' ? null : createMailer(mailerOptions(config))
  const pusher =
    config.vapidPrivateKey === ''
      ? null
      : createPusher({ privateKey: config.vapidPrivateKey, subject: config.vapidSubject, httpClient })
  const texts = {
    publicUrl: config.publicUrl,
    warn: (reason: string) =>
      logger.warn({ event: 'notification.time_zone', reason }, 'notification.time_zone'),
  }
  return {
    channels: {
      email:
        mailer === null
          ? null
          : {
              admission: createAdmission({ ...WAITING, places: config.smtpConnections }),
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
              admission: createAdmission({ ...WAITING, places: CONCURRENT_PUSHES }),
              send: (notice, subscription) =>
                pusher.send(subscription, composePush(notice, texts), { topic: notice.incidentId }),
            },
    },
    vapidPublicKey: pusher?.publicKey ?? null,
    warnOfMissingChannels() {
      if (mailer === null)
        logger.warn(
          { event: 'notification.no_mail_server' },
          'SMTP_HOST is not set: nobody is told of failing webhooks',
        )
    },
    async close() {
      await mailer?.close()
    },
  }
}

function mailerOptions(config: Config) {
  return {
    host: config.smtpHost,
    port: config.smtpPort,
    tls: config.smtpTls,
    user: config.smtpUser,
    password: config.smtpPassword,
    from: config.smtpFrom,
    connections: config.smtpConnections,
    timeoutMs: config.smtpTimeoutMs,
  }
}
