import { ApiProblem } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'
import { WILDCARD } from '../lib/permissions.js'
import { closeButton, createTask } from '../parts/dialog.js'
import { createKeyPicker } from '../parts/key-picker.js'
import { inWords, problemNote } from '../parts/problem.js'

/** @import { App, Overview } from '../types.d.ts' */

const MAX_NAME_LENGTH = 200

const NO_KEYS = 'Choose at least one event key.'

/**
 * Creates a webhook, or changes the given one. What the API refuses stands at the field it is about.
 * @param {App} app
 * @param {Overview | null} webhook
 * @param {(id: string) => void} onSaved
 */
export function openWebhookForm(app, webhook, onSaved) {
  const picker = createKeyPicker(app, webhook?.subscribedEventKeys ?? [])
  /** @type {Map<string, string>} */
  let atField = new Map()

  const task = createTask(app, (error) => {
    const { errors = [], missingPermissions = [] } = error instanceof ApiProblem ? error.problem : {}
    atField = new Map()
    for (const { pointer, code, detail } of errors) {
      const [, field = '', index] = pointer.split('/')
      const key = index === undefined ? '' : `${picker.chosen()[Number(index)] ?? ''}: `
      const words = pointer === '/subscribedEventKeys' && code === 'too_few' ? NO_KEYS : `${key}${detail}`
      atField.set(field, [atField.get(field), words].filter(Boolean).join(' '))
    }
    if (missingPermissions.length > 0)
      atField.set('subscribedEventKeys', `You lack: ${missingPermissions.map(inEnglish).join(', ')}.`)
    return atField.size === 0 ? inWords(error) : ''
  })
  /** A field that is corrected is no longer marked, whatever the API will say of it. @param {string} name */
  const corrected = (name) => () => {
    if (atField.delete(name)) app.update()
  }
  /** Leaving the search field is a change too, at the start of a click whose target must not move. @param {Event} event */
  const correctedKeys = ({ target }) => {
    if (/** @type {HTMLInputElement} */ (target).type === 'checkbox') corrected('subscribedEventKeys')()
  }
  let sent = { text: '', key: '' }
  /** The same for a repeat, so that a lost answer leads to no second webhook. @param {object} body */
  const keyOf = (body) => {
    const text = JSON.stringify(body)
    if (text !== sent.text) sent = { text, key: crypto.randomUUID() }
    return sent.key
  }
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault()
    const { elements } = /** @type {HTMLFormElement} */ (event.currentTarget)
    /** @param {string} name */
    const field = (name) => /** @type {HTMLInputElement} */ (elements.namedItem(name))
    const body = {
      url: field('url').value.trim(),
      subscribedEventKeys: picker.chosen(),
      enabled: field('enabled').checked,
      description: field('description').value.trim(),
    }
    await task.run(async () => {
      const id = webhook === null ? (await app.api.create(body, keyOf(body))).id : webhook.id
      if (webhook !== null) await app.api.change(webhook.id, changesOf(body, webhook))
      app.showMessage(webhook === null ? 'Webhook created.' : 'Changes saved.')
      if (close()) onSaved(id)
    })
    queueMicrotask(() =>
      document
        .querySelector('dialog')
        ?.querySelector('[aria-invalid="true"]')
        ?.scrollIntoView({ block: 'nearest' }),
    )
  }
  const title = webhook === null ? 'New webhook' : 'Edit webhook'
  const close = app.openDialog({
    label: title,
    task,
    render: () =>
      html`<h2>${title}</h2>
        <form class="fields" novalidate @submit=${submit}>
          <div class="field">
            <label for="url">URL</label>
            <input
              id="url"
              name="url"
              type="url"
              inputmode="url"
              value=${webhook?.url ?? 'https://'}
              required
              autocomplete="off"
              spellcheck="false"
              @input=${corrected('url')}
              aria-describedby="url-hint url-problem"
              aria-invalid=${atField.has('url') ? 'true' : 'false'}
            />
            <p class="hint" id="url-hint">
              An address of yours that answers a POST with a status of 200 to 299.
            </p>
            ${fieldProblem('url-problem', atField.get('url'))}
          </div>
          <div class="field">
            <label for="description">Name <span class="hint">optional</span></label>
            <input
              id="description"
              name="description"
              type="text"
              value=${webhook?.description ?? ''}
              maxlength=${MAX_NAME_LENGTH}
              autocomplete="off"
              @input=${corrected('description')}
              aria-describedby="description-problem"
              aria-invalid=${atField.has('description') ? 'true' : 'false'}
            />
            ${fieldProblem('description-problem', atField.get('description'))}
          </div>
          <div class="field" @change=${correctedKeys}>
            ${picker.render(atField.has('subscribedEventKeys'))}
            ${fieldProblem('keys-problem', atField.get('subscribedEventKeys'))}
          </div>
          <label class="check"
            ><input type="checkbox" name="enabled" ?checked=${webhook?.enabled ?? true} />
            <span
              >Deliver events <span class="hint">Off: nothing is sent, and what waits is stopped.</span></span
            ></label
          >
          ${fieldProblem('enabled-problem', atField.get('enabled'))} ${problemNote(task.problem)}
          <div class="buttons end">
            ${closeButton(close, task)}
            <button class="primary" ?disabled=${task.isBusy}>
              ${webhook === null ? 'Create webhook' : 'Save'}
            </button>
          </div>
        </form>`,
  })
}

/**
 * What differs from the webhook as the form was opened with it: the rest may have been changed by others meanwhile.
 * @param {Pick<Overview, 'url' | 'subscribedEventKeys' | 'enabled' | 'description'>} body
 * @param {Overview} webhook
 */
function changesOf(body, webhook) {
  const isSame = {
    url: body.url === webhook.url,
    subscribedEventKeys: isSameSet(body.subscribedEventKeys, webhook.subscribedEventKeys),
    enabled: body.enabled === webhook.enabled,
    description: body.description === webhook.description,
  }
  return Object.fromEntries(
    Object.entries(body).filter(([name]) => !isSame[/** @type {keyof typeof isSame} */ (name)]),
  )
}

/**
 * @param {readonly string[]} some
 * @param {readonly string[]} others
 */
function isSameSet(some, others) {
  return some.length === others.length && some.every((one) => others.includes(one))
}

/** @param {string} permission */
function inEnglish(permission) {
  return permission === 'fullAccess' ? `full access, which ${WILDCARD} needs` : permission
}

/**
 * @param {string} id
 * @param {string | undefined} text
 */
function fieldProblem(id, text) {
  return text === undefined ? nothing : html`<p class="problem" role="alert" id=${id}>${text}</p>`
}
