import { html, nothing } from '../lib/html.js'
import { actionInWords, detailsInWords } from '../lib/audit-words.js'
import { auditLink, deliveryLink, searchOf, webhookLink } from '../lib/links.js'
import { nameOf } from '../parts/address.js'
import { inWords, problemNote } from '../parts/problem.js'

/** @import { App, AuditEntry, View } from '../types.d.ts' */

const PAGE = '50'

/**
 * Who did what, newest first, in pages; of one webhook where the address names one.
 * @param {App} app
 * @param {URLSearchParams} parameters
 * @returns {View}
 */
export function createAuditView(app, parameters) {
  /** @type {AuditEntry[] | null} */
  let entries = null
  /** @type {string | null} */
  let nextCursor = null
  let problem = ''
  const [webhookId, cursor] = [parameters.get('webhookId') ?? '', parameters.get('cursor') ?? '']

  const load = async () => {
    try {
      const query = Object.entries({ webhookId, cursor, limit: PAGE }).filter(([, value]) => value !== '')
      const [found] = await Promise.all([app.api.audit(Object.fromEntries(query)), nameWebhooks(app)])
      ;({ data: entries, nextCursor } = found)
      problem = ''
    } catch (error) {
      problem = inWords(error)
    }
    app.update()
  }
  void load()
  /** @param {string} [to] */
  const goTo = (to = '') => app.go(searchOf(auditLink({ webhookId, cursor: to })))

  return {
    title: 'Audit',
    render: () =>
      html`<div class="heading">
          <div>
            <h1 tabindex="-1">Audit</h1>
            <p class="faint">
              ${
                webhookId === ''
                  ? 'Every management action and every access to a secret, newest first.'
                  : html`Of ${webhookName(app, webhookId)} only. <a href=${auditLink()}>Show all</a>`
              }
            </p>
          </div>
        </div>
        ${problemNote(problem)}
        ${entries === null && problem === '' ? html`<p class="faint">Loading …</p>` : nothing}
        ${entries?.length === 0 ? html`<p class="faint">No entries.</p>` : nothing}
        ${entries !== null && entries.length > 0 ? table(app, entries) : nothing}
        ${
          cursor === '' && nextCursor === null
            ? nothing
            : html`<nav class="buttons between" aria-label="Pages of entries">
                <button type="button" ?disabled=${cursor === ''} @click=${() => goTo()}>Newest</button>
                <button type="button" ?disabled=${nextCursor === null} @click=${() => goTo(nextCursor ?? '')}>
                  Older
                </button>
              </nav>`
        }`,
  }
}

/** @param {App} app */
async function nameWebhooks(app) {
  app.webhooks ??= (await app.api.overview()).data
}

/**
 * @param {App} app
 * @param {string} id
 */
function webhookName({ webhooks }, id) {
  const webhook = webhooks?.find((candidate) => candidate.id === id)
  return webhook === undefined
    ? html`<span class="mono">…${id.slice(-6)}</span> <span class="faint">(deleted)</span>`
    : html`<a href=${webhookLink(id)}>${nameOf(webhook)}</a>`
}

/**
 * @param {App} app
 * @param {readonly AuditEntry[]} entries
 */
function table(app, entries) {
  return html`<table class="list audit" role="table" aria-label="Audit trail">
    <thead role="rowgroup">
      <tr role="row">
        <th role="columnheader">Time</th>
        <th role="columnheader">Who</th>
        <th role="columnheader">Action</th>
        <th role="columnheader">Webhook</th>
        <th role="columnheader">Details</th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${entries.map((entry) => row(app, entry))}
    </tbody>
  </table>`
}

/**
 * @param {App} app
 * @param {AuditEntry} entry
 */
function row(app, { at, memberId, action, webhookId, deliveryId, details, address }) {
  const words = detailsInWords(details)
  return html`<tr role="row">
    <td role="cell" class="time-cell">${app.times.at(at)}</td>
    <td role="cell" class="who-cell" title=${address === null ? '' : `from ${address}`}>
      ${who(app, memberId, details)}
    </td>
    <td role="cell" class="action-cell">${actionInWords(action)}</td>
    <td role="cell" class="webhook-cell">
      ${webhookId === null ? nothing : webhookName(app, webhookId)}
      ${webhookId === null || deliveryId === null ? nothing : html`<a href=${deliveryLink(webhookId, deliveryId)}>delivery</a>`}
    </td>
    <td role="cell" class="details-cell faint" title=${words}>${words}</td>
  </tr>`
}

/**
 * @param {App} app
 * @param {string | null} memberId
 * @param {AuditEntry['details']} details
 */
function who({ session }, memberId, details) {
  if (memberId === session.member.id) return html`<span>${session.member.name}</span> (you)`
  if (memberId !== null) return memberId
  const { actor } = details
  return typeof actor === 'string' ? actor : 'the operator'
}
