import { html, nothing } from '../lib/html.js'
import { actionInWords, ACTIONS, detailsInWords } from '../lib/audit-words.js'
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
  const given = (/** @type {string} */ name) => parameters.get(name) ?? ''
  const filter = { webhookId: given('webhookId'), memberId: given('memberId'), action: given('action') }
  const [{ webhookId }, cursor] = [filter, given('cursor')]

  const load = async () => {
    try {
      const query = Object.entries({ ...filter, cursor, limit: PAGE }).filter(([, value]) => value !== '')
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
  const goTo = (to = '') => app.go(searchOf(auditLink({ ...filter, cursor: to })))
  /** @param {Partial<typeof filter>} changes */
  const change = (changes) => app.go(searchOf(auditLink({ ...filter, ...changes })))

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
        ${renderFilter(app, filter, entries ?? [], change)} ${problemNote(problem)}
        ${entries === null && problem === '' ? html`<p class="faint">Loading …</p>` : nothing}
        ${entries?.length === 0 ? html`<p class="faint">No entries${Object.values(filter).some((value) => value !== '') ? ' match the filter' : ''}.</p>` : nothing}
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

/**
 * Members are those of the entries that are shown: the pages know no others.
 * @param {App} app
 * @param {{ memberId: string, action: string }} filter
 * @param {readonly AuditEntry[]} entries
 * @param {(changes: { memberId?: string, action?: string }) => void} change
 */
function renderFilter({ session }, { memberId, action }, entries, change) {
  const found = [memberId, session.member.id, ...entries.map((entry) => entry.memberId ?? '')]
  const members = [...new Set(found.filter((id) => id !== ''))]
  /**
   * @param {string} label
   * @param {string} current
   * @param {[value: string, words: string][]} options
   * @param {(value: string) => void} choose
   */
  const select = (label, current, options, choose) =>
    html`<label class="field"
      >${label}
      <select
        @change=${(/** @type {Event} */ event) =>
          choose(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}
      >
        <option value="" ?selected=${current === ''}>All</option>
        ${options.map(([value, words]) => html`<option value=${value} ?selected=${value === current}>${words}</option>`)}
      </select></label
    >`
  const named = members.map((id) => /** @type {[string, string]} */ ([id, memberName(session, id)]))
  return html`<div class="filter of-audit" role="search" aria-label="Filter entries">
    ${select('Member', memberId, named, (value) => change({ memberId: value }))}
    ${select('Action', action, ACTIONS, (value) => change({ action: value }))}
  </div>`
}

/**
 * @param {App['session']} session
 * @param {string} id
 */
function memberName({ member }, id) {
  return id === member.id ? `${member.name} (you)` : id
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
  if (memberId !== null) return memberName(session, memberId)
  const { actor } = details
  return typeof actor === 'string' ? actor : 'the operator'
}
