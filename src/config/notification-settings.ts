import { integer, mailAddress, oneOf, plain, secretSetting, setting, vapidKey } from './parsers.ts'

/** How organisations are notified of failing webhooks, in the order of `.env.example`. */
export const NOTIFICATION_SETTINGS = {
  notifyAfterSeconds: setting(
    'POSTHORN_NOTIFY_AFTER_SECONDS',
    'seconds of continuous failure before the first notification of an incident is sent',
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
  smtpUser: setting('SMTP_USER', 'user name at the mail server, when it requires one', '', plain),
  smtpPassword: secretSetting('SMTP_PASSWORD', 'password at the mail server', '', plain),
  smtpFrom: setting('SMTP_FROM', 'sender address of notifications', 'posthorn@localhost', mailAddress),
  vapidPrivateKey: secretSetting(
    'VAPID_PRIVATE_KEY',
    'private key for push messages (RFC 8292, base64url of 32 bytes); without one there is no push',
    '',
    vapidKey,
  ),
}
