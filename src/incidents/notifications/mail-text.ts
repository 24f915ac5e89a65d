import { formatCount, type NotificationKind } from '../../domain/notification-rules.ts'
import { escapeHtml, isTimeZone, singleLine } from '../../domain/text-rules.ts'
import { nameWebhook } from '../../domain/webhook-name.ts'

/**
 * `brandName` is what the service calls itself. `publicUrl` has no trailing slash, and is '' where it is not configured.
 * `warn` logs a sentence.
 */
export type ComposeOptions = { brandName: string; publicUrl: string; warn: (reason: string) => void }

/** Text and HTML have the same content. */
export type MailText = { subject: string; text: string; html: string }

/** What the service worker shows. `url` opens on a click; a later message replaces one with the same `tag`. */
export type PushText = { title: string; body: string; url: string; tag: string }

/** The content of a mail, before it is formatted as text or HTML. */
type MailContent = {
  opening: string
  facts: readonly (readonly [label: string, value: string])[]
  advice: string
  link: string
}

// Spec 8.2
const DEFAULT_TIME_ZONE = 'Europe/Brussels'
const MAX_NAME_LENGTH = 100
const MAX_ERROR_LENGTH = 300
// Of the 4 KiB that a push service accepts; the rest is left to encryption and the other fields.
const MAX_PUSH_URL_LENGTH = 1000
const LINK_TEXT = 'Open this webhook in the developer area'
const SINCE_FORMAT = {
  weekday: 'long',
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'shortOffset',
} as const
const CLOSING = 'This is one of at most two messages about this incident.'

/** Composes the mail for `notice`, in English. */
export function composeMail(notice: Notice, options: ComposeOptions): MailText {
  const content = contentOf(notice, options)
  const subject = subjectOf(notice)
  return { subject, text: asText(content), html: asHtml(subject, content) }
}

/** Composes the push message for `notice`: less than 3 KB as JSON, whatever the notice contains. */
export function composePush(notice: Notice, options: ComposeOptions): PushText {
  const [since, state] = [formatSince(notice, options.warn), formatCounts(notice)]
  const url = linkTo(notice.webhookId, options.publicUrl)
  return {
    title: subjectOf(notice),
    body: `Deliveries ${notice.isFailing ? 'have been failing since' : 'failed, first on'} ${since}. ${capitalised(state)}.`,
    url: url.length <= MAX_PUSH_URL_LENGTH ? url : linkTo(notice.webhookId, ''),
    tag: notice.incidentId,
  }
}

function subjectOf(notice: Notice): string {
  const start = `Webhook deliveries to ${nameOf(notice)}`
  switch (notice.kind) {
    case 1:
      return `${start} ${notice.isFailing ? 'are' : 'were'} failing`
    case 2:
      return `${start}: an event could not be delivered`
  }
}

/** The webhook's own name, where it has one, and what its URL is called. */
function nameOf({ url, webhookId, webhookDescription }: Notice): string {
  const own = singleLine(webhookDescription, MAX_NAME_LENGTH)
  const name = nameWebhook(url, webhookId)
  return own === '' ? name : `${own} – ${name}`
}

function contentOf(notice: Notice, options: ComposeOptions): MailContent {
  const error = singleLine(notice.lastError ?? '', MAX_ERROR_LENGTH)
  return {
    opening: openingOf(notice),
    facts: [
      ['Webhook', nameOf(notice)],
      [notice.isFailing ? 'Failing since' : 'First failure', formatSince(notice, options.warn)],
      ['Deliveries', formatCounts(notice)],
      ...(error === '' ? [] : [['Last error', error] as const]),
    ],
    advice: adviceFor(notice, options.brandName),
    link: options.publicUrl === '' ? '' : linkTo(notice.webhookId, options.publicUrl),
  }
}

function openingOf(notice: Notice): string {
  const name = singleLine(notice.organisationName, MAX_NAME_LENGTH)
  const whose = name === '' ? 'a webhook of your organisation' : `a webhook of ${name}`
  switch (notice.kind) {
    case 1:
      return `Deliveries to ${whose} ${notice.isFailing ? 'keep failing' : 'kept failing, and no longer do'}.`
    case 2:
      return (
        `At least one event for ${whose} could not be delivered and ` +
        (notice.failed === 0
          ? 'was marked permanently failed; none is any more.'
          : 'is marked permanently failed.')
      )
  }
}

function adviceFor({ kind, isFailing, waiting, failed }: Notice, brandName: string): string {
  const isRetryNeeded = failed > 0 && (kind === 2 || waiting === 0)
  if (isRetryNeeded)
    return (
      'What has permanently failed is not attempted again automatically. Please fix the endpoint, ' +
      'then retry the failed deliveries in the developer area.'
    )
  return (
    `${brandName} goes on retrying on its schedule. ` +
    `${isFailing || kind === 2 ? 'Please check the endpoint: once it confirms deliveries again, those' : 'Those'} ` +
    'that are waiting go out by themselves.'
  )
}

function formatCounts({ waiting, failed }: Notice): string {
  const waits = waiting === 0 ? 'none is' : counted(waiting, 'is', 'are')
  const failures = failed === 0 ? 'none has' : counted(failed, 'has', 'have')
  return `${waits} waiting for a retry, ${failures} permanently failed`
}

function counted(count: number, singular: string, plural: string): string {
  return `${formatCount(count)} ${count === 1 ? singular : plural}`
}

/** `Saturday 21 November 2026 at 17:05 (Europe/Brussels, UTC+1)`; the offset distinguishes the repeated hour in autumn. */
function formatSince(notice: Notice, warn: ComposeOptions['warn']): string {
  const isKnown = isTimeZone(notice.timeZone)
  if (!isKnown) {
    const named = JSON.stringify(singleLine(notice.timeZone, MAX_NAME_LENGTH))
    warn(`${named} is not a time zone; the times in the notification are in ${DEFAULT_TIME_ZONE}.`)
  }
  const zone = isKnown ? notice.timeZone : DEFAULT_TIME_ZONE
  const parts = new Intl.DateTimeFormat('en-GB', { ...SINCE_FORMAT, timeZone: zone }).formatToParts(
    notice.failingSince,
  )
  const part = (type: Intl.DateTimeFormatPartTypes): string =>
    parts.find((one) => one.type === type)?.value ?? ''
  const offset = part('timeZoneName').replace(/^GMT(\+0$)?/, 'UTC')
  const place = zone === offset ? zone : `${zone}, ${offset}`
  const day = `${part('weekday')} ${part('day')} ${part('month')} ${part('year')}`
  return `${day} at ${part('hour')}:${part('minute')} (${place})`
}

function linkTo(webhookId: string, publicUrl: string): string {
  return `${publicUrl}/developer?webhook=${encodeURIComponent(webhookId)}`
}

function capitalised(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}

function asText({ opening, facts, advice, link }: MailContent): string {
  const lines = facts.map(([label, value]) => `${label}: ${value}`).join('\n')
  const linkLines = link === '' ? [] : [`${LINK_TEXT}:\n${link}`]
  return `${[opening, lines, advice, ...linkLines, CLOSING].join('\n\n')}\n`
}

/** Formats without colours, so that it follows the reader's light or dark scheme, and without external resources. */
function asHtml(subject: string, { opening, facts, advice, link }: MailContent): string {
  const rows = facts.map(([label, value]) => `<strong>${escapeHtml(label)}:</strong> ${escapeHtml(value)}`)
  const anchor = `<a href="${escapeHtml(link)}">${escapeHtml(LINK_TEXT)}</a>`
  const paragraphs = [
    escapeHtml(opening),
    rows.join('<br>\n'),
    escapeHtml(advice),
    ...(link === '' ? [] : [anchor]),
    `<small>${escapeHtml(CLOSING)}</small>`,
  ]
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="color-scheme" content="light dark">',
    `<title>${escapeHtml(subject)}</title>`,
    '</head>',
    '<body style="font-family: sans-serif; line-height: 1.5; max-width: 40em; overflow-wrap: anywhere">',
    ...paragraphs.map((paragraph) => `<p>${paragraph}</p>`),
    '</body>',
    '</html>',
    '',
  ].join('\n')
}

/** The facts of an incident that a notification states. */
export type Notice = {
  kind: NotificationKind
  incidentId: string
  webhookId: string
  organisationName: string
  /** The organisation's setting, which may be no IANA name. */
  timeZone: string
  /** The webhook's URL; messages show it shortened by `nameWebhook`. */
  url: string
  /** What its users call the webhook; '' where they gave it no name. */
  webhookDescription: string
  failingSince: Date
  /**
   * Of notification 1: false where no attempt has failed since the last success, or nothing waits or has failed: the
   * message is late. Notification 2 is about one event, and says nothing of others.
   */
  isFailing: boolean
  /** Numbers of deliveries that wait for a retry, and that have permanently failed. */
  waiting: number
  failed: number
  /** The error of the latest failed attempt, as customers see it; null where it was purged. */
  lastError: string | null
}

/**
 * The outcome of one try to send a message. `sent`: accepted. `refused`: not accepted, and a later try may succeed.
 * `failed`: not accepted, and no later try will be; `isObsolete` where the recipient is no longer one, or its channel is
 * not configured. `unknown`: it may have been accepted, so it is never sent again. `error` is a few words for an operator,
 * without secrets.
 */
export type SendOutcome =
  { state: 'sent' } | { state: 'refused' | 'failed' | 'unknown'; error: string; isObsolete?: true }
