import { html, nothing } from '../lib/html.js'
import { poll } from '../lib/poll.js'
import { DAY_MS } from '../lib/times.js'
import { loading, renderHeading, ACTION, renderTable } from '../parts/listing.js'
import { copyButton } from '../parts/payload.js'
import { closeButton, createTask, openConfirm } from '../parts/dialog.js'
import { problemNote, staleNote } from '../parts/problem.js'

/** @import { ApiKey, App, OwnApiKeys, View } from '../types.d.ts' */

/** How long a new key may be valid, in days. */
const VALIDITIES = [30, 90, 365]
const PROPOSED_DAYS = 90

const EVERY_MS = 15_000

/**
 * The member's own API keys: what they are, a new one, and the end of one.
 * @param {App} app
 * @returns {View}
 */
export function createApiKeysView(app) {
  /** @type {OwnApiKeys | null} */
  let known = null
  const { answers, refresh, stop } = poll(
    app,
    async () => {
      known = await app.api.ownApiKeys()
    },
    EVERY_MS,
  )
  return {
    title: 'API keys',
    stop,
    render: () =>
      html`${renderHeading(
          'API keys',
          `Each acts as you, ${app.session.member.name}, with your permissions.`,
          known?.isCreationEnabled === true
            ? html`<button type="button" class="primary" @click=${() => openCreate(app, refresh)}>
                New API key
              </button>`
            : nothing,
        )}
        <section class="card deliveries" aria-label="API keys">
          ${staleNote(app, answers)} ${known === null ? loading(answers) : nothing}
          ${known?.isCreationEnabled === false ? html`<p class="note">Here only the operator creates API keys.</p>` : nothing}
          ${known?.data.length === 0 ? html`<p class="faint">You have no API key.</p>` : nothing}
          ${known === null || known.data.length === 0 ? nothing : table(app, known.data, refresh)}
        </section>`,
  }
}

/**
 * @param {App} app
 * @param {readonly ApiKey[]} keys
 * @param {() => Promise<void>} reload
 */
function table(app, keys, reload) {
  const { times } = app
  return renderTable({
    caption: 'API keys, oldest first',
    columns: [
      { head: 'Name', cell: ({ name }) => html`<b>${name}</b>` },
      { head: 'Begins with', cell: ({ prefix }) => html`<code>${prefix}…</code>` },
      {
        head: 'Last used',
        cell: ({ lastUsedAt }) => (lastUsedAt === null ? 'not used yet' : times.ago(lastUsedAt)),
      },
      {
        head: 'Expires',
        cell: ({ expiresAt }) => (expiresAt === null ? 'does not expire' : times.at(expiresAt)),
      },
      {
        head: ACTION,
        cell: (key) =>
          html`<button
            type="button"
            class="quiet"
            aria-label="Revoke ${key.name}"
            @click=${() => openRevoke(app, key, reload)}
          >
            Revoke
          </button>`,
      },
    ],
    rows: keys,
  })
}

/**
 * Asks what the key is for, and shows it once, also where the form was closed before it came.
 * @param {App} app
 * @param {() => Promise<void>} reload
 */
function openCreate(app, reload) {
  const task = createTask(app)
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault()
    const { elements } = /** @type {HTMLFormElement} */ (event.currentTarget)
    /** @param {string} name */
    const field = (name) => /** @type {HTMLInputElement} */ (elements.namedItem(name)).value
    const days = Number(field('validity'))
    const expiresAt = days === 0 ? null : new Date(Date.now() + days * DAY_MS).toISOString()
    return task.run(async () => {
      const { key } = await app.api.createOwnApiKey({ name: field('name').trim(), expiresAt })
      openMade(app, key)
      await reload()
    })
  }
  const close = app.openDialog({
    label: 'New API key',
    task,
    render: () =>
      html`<h2>New API key</h2>
        <form class="fields" @submit=${submit}>
          <label class="field"
            >Name
            <input
              name="name"
              required
              maxlength="200"
              autocomplete="off"
              placeholder="what uses it, such as ci"
            />
          </label>
          <label class="field"
            >Expires
            <select name="validity">
              ${VALIDITIES.map((days) => html`<option value=${days} ?selected=${days === PROPOSED_DAYS}>in ${days} days</option>`)}
              <option value="0">never</option>
            </select>
          </label>
          ${problemNote(task.problem)}
          <div class="buttons end">
            ${closeButton(close, task)}
            <button class="primary" ?disabled=${task.isBusy}>Create</button>
          </div>
        </form>`,
  })
}

/**
 * @param {App} app
 * @param {string} key
 */
function openMade(app, key) {
  const close = app.openDialog({
    label: 'New API key',
    render: () =>
      html`<h2>New API key</h2>
        <p>Copy it now: it is not shown again.</p>
        <p class="secret"><code>${key}</code></p>
        <div class="buttons end">
          ${copyButton(app, 'API key', key)}
          <button type="button" class="primary" @click=${close}>Done</button>
        </div>`,
  })
}

/**
 * @param {App} app
 * @param {ApiKey} key
 * @param {() => Promise<void>} reload
 */
function openRevoke(app, { id, name }, reload) {
  openConfirm(app, {
    title: `Revoke ${name}?`,
    text: html`<p>
      What uses it is refused from then on, and browsers that were signed in with it are signed out. This
      cannot be taken back. Keys that were made with it stay: revoke those too where it leaked.
    </p>`,
    button: 'Revoke API key',
    run: async (close) => {
      await app.api.revokeOwnApiKey(id)
      close()
      app.showMessage('API key revoked.')
      await reload()
    },
  })
}
