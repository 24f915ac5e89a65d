import { html, nothing, repeat } from '../lib/html.js'
import { MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { plural } from '../lib/times.js'
import { inWords, problemNote } from '../parts/problem.js'
import { forceAllAction, openAction } from './actions.js'
import { openWebhookForm } from './webhook-form.js'
import { renderWebhookCard } from './webhook-card.js'

/** @import { App, Overview, View } from '../types.d.ts' */

const EVERY_MS = 3_000

/**
 * Every webhook of the organisation and how it stands, kept up to date.
 * @param {App} app
 * @returns {View}
 */
export function createWebhookList(app) {
  /** @type {Overview[] | null} */
  let webhooks = null
  let problem = ''
  const asking = poll(async () => {
    try {
      webhooks = (await app.api.overview()).data
      problem = ''
    } catch (error) {
      problem = inWords(error)
      throw error
    } finally {
      app.update()
    }
  }, EVERY_MS)
  const mayManage = may(app.session, MANAGE)
  const create = () =>
    openWebhookForm(app, null, (id) => app.go(`?${new URLSearchParams({ webhook: id }).toString()}`))

  return {
    title: 'Webhooks',
    stop: asking.stop,
    render: () =>
      html`<div class="heading">
          <div>
            <h1 tabindex="-1">Webhooks</h1>
            <p class="faint">${webhooks === null ? '' : summary(webhooks)}</p>
          </div>
          ${
            mayManage && webhooks !== null && webhooks.length > 0
              ? html`<div class="buttons">
                  <button type="button" @click=${() => openAction(app, forceAllAction(app), asking.refresh)}>
                    Force retry all
                  </button>
                  <button type="button" class="primary" @click=${create}>New webhook</button>
                </div>`
              : nothing
          }
        </div>
        ${problemNote(problem)} ${webhooks === null ? loading(problem) : nothing}
        ${webhooks?.length === 0 ? empty(mayManage, create) : nothing}
        <ul class="cards" aria-label="Webhooks">
          ${repeat(
            webhooks ?? [],
            ({ id }) => id,
            (webhook) => html`<li>${renderWebhookCard(app, webhook, asking.refresh)}</li>`,
          )}
        </ul>`,
  }
}

/** @param {string} problem */
function loading(problem) {
  return problem === '' ? html`<p class="faint">Loading …</p>` : nothing
}

/** @param {readonly Overview[]} webhooks */
function summary(webhooks) {
  const failing = webhooks.filter(({ openIncident }) => openIncident !== null).length
  if (webhooks.length === 0) return ''
  if (failing === 0) return `${plural(webhooks.length, 'webhook')}, none failing`
  return `${plural(webhooks.length, 'webhook')}, ${String(failing)} failing`
}

/**
 * @param {boolean} mayManage
 * @param {() => void} create
 */
function empty(mayManage, create) {
  return html`<section class="empty">
    <img src="/assets/icon.svg" alt="" width="56" height="56" />
    <h2>No webhooks yet</h2>
    <p>A webhook sends events of your organisation to an address of yours, as they happen.</p>
    ${
      mayManage
        ? html`<button type="button" class="primary" @click=${create}>Create the first one</button>`
        : html`<p class="faint">A member with the permission <code>webhook:manage</code> can create one.</p>`
    }
  </section>`
}
