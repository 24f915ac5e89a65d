import { contact, integer, mailAddress, oneOf, plain, vapidKey, webAddress } from './setting-parsers.ts'
import { setting } from './setting.ts'

/** What e-mail and push need, in the order of `.env.example`. */
export const NOTIFICATION_SETTINGS = {
  publicUrl: setting(
    'POSTHORN_PUBLIC_URL',
    'where people reach this service in a browser, such as https://hooks.example.com; notifications link to it',
    '',
    webAddress,
  ),
  notifyAfterSeconds: setting(
    'POSTHORN_NOTIFY_AFTER_SECONDS',
    'seconds of continuous failure after which the first notification of an incident goes out',
    '300',
    integer(1, 86_400),
  ),
  smtpHost: setting('SMTP_HOST', 'mail server for notifications; without one no e-mail is sent', '', plain),
  smtpPort: setting('SMTP_PORT', 'port of the mail server', '587', integer(1, 65_535)),
  smtpTls: setting(
    'SMTP_TLS',
    'starttls: refuse a server that does not offer it; implicit: TLS from the first byte; none: in clear',
    'starttls',
    oneOf('starttls', 'implicit', 'none'),
  ),
  smtpUser: setting('SMTP_USER', 'user name at the mail server, when it asks for one', '', plain),
  smtpPassword: setting('SMTP_PASSWORD', 'password at the mail server', '', plain),
  smtpFrom: setting('SMTP_FROM', 'address that notifications come from', 'posthorn@localhost', mailAddress),
  smtpConnections: setting('SMTP_CONNECTIONS', 'connections to the mail server at most', '2', integer(1, 20)),
  smtpTimeoutMs: setting(
    'SMTP_TIMEOUT_MS',
    'how long the mail server may take for each step, in milliseconds',
    '30000',
    integer(100, 60_000),
  ),
  vapidPrivateKey: setting(
    'VAPID_PRIVATE_KEY',
    'private key for push messages (RFC 8292, base64url of 32 bytes); without one there is no push',
    '',
    vapidKey,
  ),
  vapidSubject: setting(
    'VAPID_SUBJECT',
    'how a push service can reach you: a mailto: or https: address',
    'mailto:posthorn@localhost',
    contact,
  ),
}
