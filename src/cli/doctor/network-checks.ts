import type { Config } from '../../config/load.ts'
import { checkMailServer, type MailServerProblem } from '../../incidents/notifications/mailer.ts'
import { createPusher } from '../../incidents/notifications/push.ts'
import { isLoopbackHost } from '../../outbound/host-names.ts'
import { assertGuardWorks } from '../../outbound/pinned-connector.ts'
import { MAILER_SETTINGS, mailerOptions, pushSubject } from '../../process/notifications.ts'
import { describeError } from '../../process/visible-text.ts'
import { defineCheck, ok, problem, problemsOr } from './check.ts'
import type { Check, DatabaseAccess, Finding } from './check.ts'
import type { ProblemCode } from './problems.ts'
import { hasSharedSessions } from '../../db/queries/server-state.ts'
import { findOutbox, readFigures } from '../../relay/outbox.ts'

/** A healthy mail server may hold its greeting for seconds, against senders of spam. */
const MAIL_TIMEOUT_MS = 15_000

/** Ends before the check does, so that the reason is shown. */
const MAIL_STEP_TIMEOUT_MS = MAIL_TIMEOUT_MS - 1_000

const MAIL_PROBLEMS: Readonly<Record<MailServerProblem['failed'], ProblemCode>> = {
  connection: 'mail.unreachable',
  tls: 'mail.tls_failed',
  login: 'mail.login_refused',
}

/**
 * Checks what stands between Posthorn and others: the proxy, since Posthorn itself speaks plain HTTP; the outbound policy;
 * the mail server, without sending a mail; and the key of push messages.
 */
export function networkChecks(config: Partial<Config>): Check[] {
  return [
    defineCheck(config, {
      name: 'http.proxy',
      settings: ['publicUrl', 'trustedProxies'],
      failure: 'settings.invalid',
      run: checkProxy,
    }),
    defineCheck(config, {
      name: 'outbound.guard',
      settings: [],
      failure: 'outbound.guard_broken',
      run: async () => {
        await assertGuardWorks()
        return [ok('outbound.guard', 'loopback and metadata addresses are refused')]
      },
    }),
    defineCheck(config, {
      name: 'outbound.policy',
      settings: ['allowHttp', 'allowedCidrs'],
      failure: 'settings.invalid',
      run: checkPolicy,
    }),
    defineCheck(config, {
      name: 'mail.server',
      settings: MAILER_SETTINGS,
      failure: 'mail.unreachable',
      timeoutMs: MAIL_TIMEOUT_MS,
      run: checkMail,
    }),
    defineCheck(config, {
      name: 'mail.encryption',
      settings: ['smtpHost', 'smtpTls'],
      failure: 'settings.invalid',
      run: checkEncryption,
    }),
    defineCheck(config, {
      name: 'push.key',
      settings: ['vapidPrivateKey', 'publicUrl', 'smtpFrom'],
      failure: 'push.invalid',
      run: checkPush,
    }),
  ]
}

function checkProxy({ publicUrl, trustedProxies }: Pick<Config, 'publicUrl' | 'trustedProxies'>): Finding[] {
  if (trustedProxies.length > 0) return [ok('http.proxy', `trusted: ${trustedProxies.join(', ')}`)]
  return publicUrl.startsWith('https:')
    ? [problem('http.proxy_untrusted', 'POSTHORN_PUBLIC_URL is https, and TRUSTED_PROXIES is empty')]
    : [ok('http.proxy', 'trusted: no proxy')]
}

/** Names what opens the policy. */
function checkPolicy({ allowHttp, allowedCidrs }: Pick<Config, 'allowHttp' | 'allowedCidrs'>): Finding[] {
  const where = allowHttp === 'loopback' ? 'on this machine' : 'anywhere'
  return problemsOr(ok('outbound.policy', 'https only, and public addresses only'), [
    allowHttp !== false && problem('outbound.http_allowed', `receivers without TLS are allowed ${where}`),
    allowedCidrs.length > 0 && problem('outbound.private_allowed', `allowed: ${allowedCidrs.join(', ')}`),
  ])
}

async function checkMail(config: Pick<Config, (typeof MAILER_SETTINGS)[number]>): Promise<Finding[]> {
  const { smtpHost, smtpPort, smtpUser } = config
  if (smtpHost === '') return [problem('mail.not_configured', 'SMTP_HOST is not set')]
  const address = `${smtpHost}:${smtpPort}`
  const failure = await checkMailServer(mailerOptions(config, MAIL_STEP_TIMEOUT_MS))
  if (failure !== null) return [problem(MAIL_PROBLEMS[failure.failed], `${failure.error} (${address})`)]
  const signedIn = smtpUser === '' ? 'without signing in' : 'and signs Posthorn in'
  return [ok('mail.server', `the mail server answers at ${address} ${signedIn}`)]
}

function checkEncryption({ smtpHost, smtpTls }: Pick<Config, 'smtpHost' | 'smtpTls'>): Finding[] {
  if (smtpHost === '') return []
  if (smtpTls !== 'none') return [ok('mail.encryption', `SMTP_TLS is ${smtpTls}`)]
  if (isLoopbackHost(smtpHost)) return [ok('mail.encryption', 'mails stay on this machine')]
  return [problem('mail.in_clear', `SMTP_TLS is none, and ${smtpHost} is another machine`)]
}

function checkPush(config: Pick<Config, 'vapidPrivateKey' | 'publicUrl' | 'smtpFrom'>): Finding[] {
  const { vapidPrivateKey } = config
  const subject = pushSubject(config)
  if (vapidPrivateKey === '')
    return [ok('push.key', 'VAPID_PRIVATE_KEY is not set: there are no push messages')]
  try {
    const httpClient = { post: () => Promise.reject(new Error('nothing is sent')) }
    createPusher({ privateKey: vapidPrivateKey, subject, httpClient })
  } catch (error) {
    return [problem('push.invalid', describeError(error))]
  }
  if (/[@/]localhost\b/.test(subject))
    return [problem('push.subject_unusable', `the contact for push services is ${subject}`)]
  return [ok('push.key', `the key is valid, its contact is ${subject}`)]
}

/** A relay publishes within seconds; a row that waits longer is held up. */
const MAX_AGE_S = 300

/** Checks the outbox in the platform's database, and the key that its rows are published with. */
export function relayChecks(config: Partial<Config>, access: DatabaseAccess): Check[] {
  return [
    defineCheck(config, {
      name: 'relay.outbox',
      settings: ['relayDatabaseUrl'],
      failure: 'relay.unreachable',
      run: ({ relayDatabaseUrl }) => checkOutbox(access, relayDatabaseUrl),
    }),
    defineCheck(config, {
      name: 'relay.key',
      settings: ['relayDatabaseUrl', 'relayOperatorKey', 'operatorKeys'],
      failure: 'settings.invalid',
      run: checkKey,
    }),
  ]
}

async function checkOutbox(access: DatabaseAccess, databaseUrl: string): Promise<Finding[]> {
  if (databaseUrl === '') return []
  const { host, pathname } = new URL(databaseUrl)
  try {
    const db = await access.open({ databaseUrl, databasePooler: 'none' })
    const outbox = await findOutbox(db)
    if (outbox === null)
      return [problem('relay.outbox_missing', `no table posthorn_outbox (${host}${pathname})`)]
    const { missingRights } = outbox
    if (missingRights.length > 0)
      return [problem('relay.rights_missing', `posthorn_outbox: ${missingRights.join(', ')}`)]
    if (await hasSharedSessions(db))
      return [problem('relay.pooler_used', 'transactions of one connection get different sessions')]
    const { waiting, late, parked, oldestAge } = await readFigures(db)
    const seen = `${waiting} row(s) wait, the oldest for ${Math.round(oldestAge)} s, ${late} for over a day`
    return problemsOr(ok('relay.outbox', seen), [
      oldestAge > MAX_AGE_S && problem('relay.rows_waiting', seen),
      parked > 0 && problem('relay.rows_parked', `${parked} row(s) were refused`),
    ])
  } catch (error) {
    return [problem('relay.unreachable', `${describeError(error)} (${host}${pathname})`)]
  }
}

function checkKey({
  relayDatabaseUrl,
  relayOperatorKey,
  operatorKeys,
}: Pick<Config, 'relayDatabaseUrl' | 'relayOperatorKey' | 'operatorKeys'>): Finding[] {
  if (relayDatabaseUrl === '' || relayOperatorKey === '') return []
  // Where the relay runs on a machine of its own, the keys of the API are not known.
  if (operatorKeys.length === 0) return [ok('relay.key', 'POSTHORN_OPERATOR_KEYS is not known here')]
  const key = operatorKeys.find(({ secret }) => secret === relayOperatorKey)
  if (key === undefined) return [problem('relay.key_refused', 'it is not in POSTHORN_OPERATOR_KEYS')]
  return key.scopes.includes('publish')
    ? [ok('relay.key', `the operator key ${key.name} may publish`)]
    : [problem('relay.key_refused', `the operator key ${key.name} lacks the scope publish`)]
}
