import { join } from 'node:path'
import type { Environment } from '../config/load.ts'
import { SETTINGS } from '../config/settings.ts'
import { developmentKeyRing, developmentOperatorKey, developmentVapidKey, keepInFile } from './data-folder.ts'

/** Receivers on this machine are what a newcomer tries first. */
const LOOPBACK_RANGES = '127.0.0.0/8,::1/128'

/** A Ctrl-C is to end everything within ten seconds; an attempt cut off by it is made again at the next start. */
export const SHUTDOWN_GRACE = { SHUTDOWN_GRACE_MS: '4000' }

/**
 * The environment as given, completed with what development needs. What is set already wins, set to empty too, and a
 * secret also by its file; but for what belongs to the servers that are started.
 */
export function developmentEnvironment(
  env: Environment,
  parts: {
    dataDir: string
    databaseUrl: string
    temporalAddress: string
    temporalUiUrl: string | null
    apiUrl: string
    mailbox: { port: number }
  },
): Environment {
  const unlessGiven = (variable: string, create: (dataDir: string) => string): Environment =>
    env[variable] || env[`${variable}_FILE`] ? {} : { [variable]: create(parts.dataDir) }
  return {
    POSTHORN_ALLOW_HTTP: 'loopback',
    POSTHORN_ALLOWED_CIDRS: LOOPBACK_RANGES,
    POSTHORN_PUBLIC_URL: parts.apiUrl,
    TEMPORAL_UI_URL: parts.temporalUiUrl ?? '',
    ...SHUTDOWN_GRACE,
    METRICS_PORT: '0',
    ...env,
    ...(otherMailServer(env) === null ? mailServer(parts.mailbox) : {}),
    ...unlessGiven('POSTHORN_ENCRYPTION_KEYS', developmentKeyRing),
    ...unlessGiven('VAPID_PRIVATE_KEY', developmentVapidKey),
    ...unlessGiven('POSTHORN_OPERATOR_KEYS', developmentOperatorKey),
    HOST: '127.0.0.1',
    METRICS_HOST: '127.0.0.1',
    DATABASE_URL: parts.databaseUrl,
    DATABASE_URL_FILE: '',
    TEMPORAL_ADDRESS: parts.temporalAddress,
    // The development server knows neither TLS nor keys.
    TEMPORAL_NAMESPACE: 'default',
    TEMPORAL_API_KEY: '',
    TEMPORAL_API_KEY_FILE: '',
    TEMPORAL_TLS_CA_FILE: '',
    TEMPORAL_TLS_CERT_FILE: '',
    TEMPORAL_TLS_KEY_FILE: '',
  }
}

/**
 * Writes the settings of the running instance as a shell script, so that other commands of Posthorn can be given them.
 * It has secrets, and is readable by its owner only. Returns its path.
 */
export function writeEnvironmentFile(dataDir: string, env: Environment): string {
  const names = Object.values(SETTINGS).flatMap(({ variable, isSecret }) =>
    isSecret ? [variable, `${variable}_FILE`] : [variable],
  )
  const assignments = names.flatMap((name) => {
    const value = env[name]
    return value === undefined ? [] : [`${name}=${quoteForShell(value)}`]
  })
  const file = join(dataDir, 'environment')
  keepInFile(file, [`unset ${names.join(' ')}`, ...assignments, ''].join('\n'))
  return file
}

/** The mail server that the environment names; null where the mailbox takes the mails. */
export function otherMailServer(env: Environment): string | null {
  return env['SMTP_HOST']?.trim() || null
}

/** A user and a password belong to another server: the mailbox asks for none, and so nodemailer would refuse. */
function mailServer({ port }: { port: number }): Environment {
  return {
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: String(port),
    SMTP_TLS: 'none',
    SMTP_USER: '',
    SMTP_PASSWORD: '',
    SMTP_PASSWORD_FILE: '',
  }
}

/** Quotes a word for a POSIX shell. */
export function quoteForShell(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`
}
