import type { Middleware } from 'koa'
import { escapeHtml } from '../domain/text-rules.ts'
import { methodNotAllowed } from '../problem-error.ts'
import { requireLoopbackHost } from '../http/middleware/requested-host.ts'
import type { Mail } from './mailbox.ts'

export const MAILBOX_PATH = '/dev/mailbox'

/**
 * No script and nothing from other origins. An `iframe` with `srcdoc` inherits this, so it applies to the HTML of a
 * mail too; its style attributes are the reason for `unsafe-inline`.
 */
const PAGE_POLICY = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Shows the mailbox at `/dev/mailbox`: a page when the client accepts HTML, JSON otherwise. Passes other paths on. */
export function mailboxPage(mails: () => Mail[], hints: MailboxHints): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== MAILBOX_PATH) {
      await next()
      return
    }
    requireLoopbackHost(ctx)
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') throw methodNotAllowed(['GET', 'HEAD'])
    ctx.vary('Accept')
    // What asks for anything, as curl does, gets the first of them.
    if (ctx.accepts('json', 'html') !== 'html') {
      ctx.body = { data: mails() }
      return
    }
    ctx.set('content-security-policy', PAGE_POLICY)
    ctx.type = 'html'
    ctx.body = renderMailbox(mails(), { ...hints, paused: ctx.querystring === 'paused' })
  }
}

/** What the empty mailbox explains about getting a mail. */
export type MailboxHints = {
  receiverUrl: string
  notifyAfterSeconds: number
  /** The mail server that the environment names instead of this mailbox; null where mails come here. */
  otherMailServer: string | null
}

const RELOAD_SECONDS = 5

/** The page of the mailbox. Everything that comes out of a mail is text, or shut up in a frame that runs nothing. */
function renderMailbox(mails: readonly Mail[], options: MailboxHints & { paused: boolean }): string {
  const { paused } = options
  // Reloading closes open mails, so it can be paused.
  const reload = paused ? '' : `<meta http-equiv="refresh" content="${RELOAD_SECONDS}">`
  const status = paused
    ? `Paused. <a href="?">Reload every ${RELOAD_SECONDS} seconds</a>`
    : `Reloads every ${RELOAD_SECONDS} seconds. <a href="?paused">Pause</a>`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${reload}
<title>Mailbox (${mails.length}) · Posthorn</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>Mailbox</h1>
<p>${describeCount(mails.length)} ${status}</p>
</header>
<main>
${mails.length === 0 ? renderEmpty(options) : mails.map(renderMail).join('\n')}
</main>
</body>
</html>
`
}

function describeCount(count: number): string {
  if (count === 0) return ''
  return count === 1 ? '1 mail.' : `${count} mails, newest first.`
}

function renderMail({ to, subject, text, html, receivedAt }: Mail): string {
  const time = `${receivedAt.slice(0, 10)} ${receivedAt.slice(11, 19)} UTC`
  return `<article>
<h2 dir="auto">${escapeHtml(subject === '' ? '(no subject)' : subject)}</h2>
<p><span>To ${escapeHtml(to)}</span> <time datetime="${escapeHtml(receivedAt)}">${escapeHtml(time)}</time></p>
${text === '' ? '' : `<pre dir="auto">${escapeHtml(text.trimEnd())}</pre>`}
${html === null ? '' : renderHtmlPart(html)}
</article>`
}

/** `sandbox` without a word allows nothing: no script, no form, no way out of the frame. */
function renderHtmlPart(html: string): string {
  return `<details>
<summary>HTML part</summary>
<iframe sandbox="" loading="lazy" title="HTML part of the mail" srcdoc="${escapeHtml(html)}"></iframe>
</details>`
}

function renderEmpty({ receiverUrl, notifyAfterSeconds, otherMailServer }: MailboxHints): string {
  if (otherMailServer !== null)
    return `<section>
<h2>Mails do not come here</h2>
<p>The environment names a mail server of its own, <code>SMTP_HOST</code> ${escapeHtml(otherMailServer)}: mails go there.</p>
</section>`
  return `<section>
<h2>No mail yet</h2>
<p>Posthorn sends a mail when a webhook keeps failing. To get one:</p>
<ol>
<li>Create a webhook on <code>${escapeHtml(receiverUrl)}/fail</code>, which answers every POST with a 500.</li>
<li>Publish an event that it is subscribed to.</li>
<li>Wait ${notifyAfterSeconds} seconds (<code>POSTHORN_NOTIFY_AFTER_SECONDS</code>; 5 is handy here).</li>
</ol>
<p>The lines to paste are in the terminal where <code>npm start</code> runs.</p>
</section>`
}

const STYLE = `
:root { --back: #f6f5f2; --card: #fff; --ink: #1d1c1a; --faint: #6a665f; --line: #dedad2; --link: #0b57d0 }
@media (prefers-color-scheme: dark) {
  :root { --back: #181816; --card: #22211f; --ink: #eceae5; --faint: #a39e95; --line: #3a3834; --link: #8ab4f8 }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 50rem; background: var(--back); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { margin: 0; font-size: 1.5rem }
h2 { margin: 0; font-size: 1.05rem; line-height: 1.35 }
p { margin: .25rem 0 0 }
a { color: var(--link) }
header p, article p { color: var(--faint); font-size: .875rem }
article, section { margin-top: 1.25rem; padding: 1.1rem 1.25rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .6rem }
article p { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem }
time { font-variant-numeric: tabular-nums }
pre { margin: .9rem 0 0; padding-top: .9rem; border-top: 1px solid var(--line); white-space: pre-wrap;
  font: .875rem/1.55 ui-monospace, monospace }
code { font: .9em ui-monospace, monospace }
ol { margin: .75rem 0; padding-left: 1.4rem }
li + li { margin-top: .35rem }
details { margin-top: .9rem; font-size: .875rem }
summary { cursor: pointer; color: var(--link) }
iframe { display: block; width: 100%; height: 26rem; margin-top: .6rem; resize: vertical; background: #fff;
  color-scheme: light; border: 1px solid var(--line); border-radius: .4rem }
`
