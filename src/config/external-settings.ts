import {
  hostAndPort,
  integer,
  mailAddress,
  oneOf,
  operatorSecret,
  optionalDatabaseUrl,
  plain,
  secretSetting,
  setting,
  vapidKey,
  webAddress,
} from './parsers.ts'

/** How Temporal is reached, in the order of `.env.example`. */
export const TEMPORAL_SETTINGS = {
  temporalAddress: setting(
    'TEMPORAL_ADDRESS',
    'host:port of the Temporal frontend',
    '127.0.0.1:7233',
    hostAndPort,
  ),
  temporalNamespace: setting('TEMPORAL_NAMESPACE', 'Temporal namespace', 'default', plain),
  temporalTaskQueue: setting('TEMPORAL_TASK_QUEUE', 'task queue of the workers', 'posthorn', plain),
  temporalTlsCaFile: setting(
    'TEMPORAL_TLS_CA_FILE',
    "PEM file with the authority that signed Temporal's certificate; empty for the public ones",
    '',
    plain,
  ),
  temporalTlsCertFile: setting(
    'TEMPORAL_TLS_CERT_FILE',
    'PEM file with the certificate that Posthorn shows Temporal, when it requires one',
    '',
    plain,
  ),
  temporalTlsKeyFile: setting(
    'TEMPORAL_TLS_KEY_FILE',
    'PEM file with the private key of that certificate',
    '',
    plain,
  ),
  temporalApiKey: secretSetting('TEMPORAL_API_KEY', 'API key for Temporal, when it requires one', '', plain),
  temporalDeploymentName: setting(
    'TEMPORAL_DEPLOYMENT_NAME',
    'name of the worker deployment, for workers with a build id',
    'posthorn',
    plain,
  ),
  temporalBuildId: setting(
    'TEMPORAL_WORKER_BUILD_ID',
    'build id of this worker; empty for workers without versions',
    '',
    plain,
  ),
  temporalUiUrl: setting('TEMPORAL_UI_URL', 'address of the Temporal UI for operators', '', webAddress),
}

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

/** What only `posthorn relay` and `posthorn doctor` read, in the order of `.env.example`. */
export const RELAY_SETTINGS = {
  relayDatabaseUrl: secretSetting(
    'RELAY_DATABASE_URL',
    "for posthorn relay: your platform's PostgreSQL 15 to 18 with the outbox, itself and not behind a pooler",
    '',
    optionalDatabaseUrl,
  ),
  relayOperatorKey: secretSetting(
    'RELAY_OPERATOR_KEY',
    'for posthorn relay: the secret of an operator key with the scope publish',
    '',
    operatorSecret,
  ),
  relayKeepHours: setting(
    'RELAY_KEEP_HOURS',
    'for posthorn relay: hours that published rows are kept in the outbox; 0 deletes them at once',
    '0',
    integer(0, 87_600),
  ),
}
