import type { Middleware } from 'koa'
import { methodNotAllowed } from '../errors.ts'
import { requireLoopbackHost } from '../http/middleware/requested-host.ts'
import type { Mail } from './mail-folder.ts'
import { renderMailbox, type MailboxHints } from './render-mailbox.ts'

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
