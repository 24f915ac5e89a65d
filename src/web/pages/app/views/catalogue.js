import { renderSchema } from '../../docs/schema.js'
import { renderHeading } from '../parts/listing.js'
import { html, nothing, repeat } from '../lib/html.js'
import { addressed, keepInAddress } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { nameOf } from '../parts/address.js'
import { copyButton } from '../parts/payload.js'
import { createFinder } from '../parts/filter-fields.js'
import { icon } from '../parts/state-mark.js'
import { staleNote } from '../parts/problem.js'
import { createTestSender } from './delivery-parts.js'

/** @import { App, EventKey, Overview, View } from '../types.d.ts' */
/** @import { TestSender } from './delivery-parts.js' */
/** @import { Document, Schema } from '../../docs/document.js' */

/** Parameter of the address. */
const KEY = 'key'

const EVERY_MS = 15_000

/**
 * Every event key: what it means, who may see it, its schema and an example, which can be sent as a test.
 * @param {App} app
 * @returns {View}
 */
export function createCatalogueView(app) {
  const finder = createFinder(app, {
    label: 'Search event keys',
    placeholder: 'Key, meaning or permission',
  })
  let open = addressed(KEY)
  let isShown = false
  const mayTest = may(app.session, MANAGE)
  const tests = createTestSender(app)
  const polling = poll(
    app,
    async () => {
      if (mayTest) app.webhooks = (await app.api.overview()).data
    },
    EVERY_MS,
  )

  /** @param {string} key */
  const toggled = (key) => (/** @type {Event} */ event) => {
    const isOpen = /** @type {HTMLDetailsElement} */ (event.currentTarget).open
    if (isOpen === (open === key)) return
    open = isOpen ? key : ''
    keepInAddress(KEY, open)
    app.update()
  }
  /** A link to a key leads to its row. */
  const scrollOnce = () => {
    if (isShown || open === '') return
    isShown = true
    setTimeout(() => document.querySelector('.catalogue details[open]')?.scrollIntoView())
  }

  return {
    stop: polling.stop,
    get title() {
      return open === '' ? 'Catalogue' : `${open} · Catalogue`
    },
    render() {
      scrollOnce()
      const found = app.eventKeys.filter(({ key, meaning, permission }) =>
        finder.finds(`${key} ${meaning} ${permission}`),
      )
      return html`${renderHeading(
          'Catalogue',
          html`<span role="status">${found.length} of ${app.eventKeys.length} event keys</span>`,
          finder.render(),
        )}
        ${staleNote(app, polling.answers)}
        <ul class="plain catalogue" aria-label="Event keys">
          ${repeat(
            found,
            ({ key }) => key,
            (eventKey) =>
              html`<li>
                <details name="event-key" ?open=${eventKey.key === open} @toggle=${toggled(eventKey.key)}>
                  <summary>${summary(app, eventKey)}</summary>
                  ${eventKey.key === open ? body(app, eventKey, mayTest ? tests : null) : nothing}
                </details>
              </li>`,
          )}
        </ul>`
    },
  }
}

/**
 * @param {App} app
 * @param {EventKey} eventKey
 */
function summary({ session }, { key, meaning, permission }) {
  return html`<span class="mono">${key}</span> <span class="meaning">${meaning}</span>
    <span class="faint permission"
      >${may(session, permission) ? nothing : html`${icon('lock')} you lack `}<span class="mono"
        >${permission}</span
      ></span
    >`
}

/**
 * @param {App} app
 * @param {EventKey} eventKey
 * @param {TestSender | null} tests null for a member who may not send any
 */
function body(app, { key, permission, subscribable, schema, example }, tests) {
  const text = JSON.stringify(example, null, 2)
  return html`<div class="columns even">
    <div>
      <h3>Fields of <code>data</code></h3>
      ${schema === null ? html`<p class="faint">Any object.</p>` : fields(schema)}
      <p class="hint">
        Members with <span class="mono">${permission}</span> may see its payloads.
        ${subscribable ? nothing : 'It cannot be subscribed to by name.'}
      </p>
      ${tests === null ? nothing : test(app, key, permission, tests)}
    </div>
    <div>
      <div class="bar">
        <h3>Example of <code>data</code></h3>
        ${copyButton(app, 'example', text)}
      </div>
      <pre tabindex="0" role="region" aria-label="Example of ${key}" class="wrap">${text}</pre>
    </div>
  </div>`
}

/** @param {Record<string, unknown>} schema */
function fields(schema) {
  // A schema of the catalogue refers to nothing but to itself.
  const document = /** @type {Document} */ (/** @type {unknown} */ (schema))
  return html`${renderSchema(document, /** @type {Schema} */ (schema))}
    <details>
      <summary>JSON schema</summary>
      <pre tabindex="0" role="region" aria-label="JSON schema" class="wrap">
${JSON.stringify(schema, null, 2)}</pre>
    </details>`
}

/**
 * @param {App} app
 * @param {string} key
 * @param {string} permission
 * @param {TestSender} tests
 */
function test(app, key, permission, tests) {
  if (!may(app.session, permission))
    return html`<p class="hint">Only members with ${permission} may send this example.</p>`
  if (app.webhooks === null) return nothing
  const enabled = app.webhooks.filter((webhook) => webhook.enabled)
  if (enabled.length === 0)
    return html`<p class="hint">Switch a webhook on to send this example to it as a test.</p>`
  /** @param {SubmitEvent} event */
  const send = (event) => {
    event.preventDefault()
    const { elements } = /** @type {HTMLFormElement} */ (event.currentTarget)
    return tests.send(/** @type {HTMLSelectElement} */ (elements.namedItem('webhook')).value, key)
  }
  return html`<form class="send-test" @submit=${send}>
    <label for="test-webhook">Send this example as a test to</label>
    <select id="test-webhook" name="webhook">
      ${repeat(
        enabled,
        ({ id }) => id,
        (webhook) => html`<option value=${webhook.id}>${label(webhook)}</option>`,
      )}
    </select>
    <button ?disabled=${tests.isBusy()}>Send this example as a test</button>
  </form>`
}

/** @param {Overview} webhook */
function label(webhook) {
  const { name, description } = webhook
  return description === '' ? name : `${nameOf(webhook)} (${name})`
}
