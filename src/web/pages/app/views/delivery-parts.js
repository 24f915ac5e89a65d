import { html, nothing } from '../lib/html.js'
import { deliveryLink, placeLink, workflowLink } from '../lib/links.js'
import { retryInWords } from './retry-preview.js'
import { copyButton } from '../parts/payload.js'
import { createTask, openConfirm } from '../parts/dialog.js'
import { inWords, staleNote } from '../parts/problem.js'

/** @import { Answers } from '../lib/poll.js' */
/** @import { App, Delivery, DeliveryDetail, EventDetail, Template } from '../types.d.ts' */

/**
 * An id with a button that copies it.
 * @param {App} app
 * @param {Template} label
 * @param {string} what named in the button's label
 * @param {string} id
 * @param {string} [link]
 * @returns {Template}
 */
export function idRow(app, label, what, id, link) {
  return html`<dt>${label}</dt>
    <dd class="id-row">
      ${link === undefined ? html`<span class="mono">${id}</span>` : html`<a class="mono" href=${link}>${id}</a>`}
      ${copyButton(app, what, id)}
    </dd>`
}

/**
 * The ids that stand in the paths of the API.
 * @param {App} app
 * @param {string} webhookId
 * @returns {Template}
 */
export function webhookIds(app, webhookId) {
  return html`${idRow(app, 'Webhook', 'webhook id', webhookId)}
  ${idRow(app, 'Organisation', 'organisation id', app.session.organisation.id)}`
}

/**
 * What a delivery belongs to.
 * @param {App} app
 * @param {DeliveryDetail} delivery
 * @returns {Template}
 */
export function renderIds(app, { id, webhookId, eventId, traceId }) {
  const workflow = workflowLink(app.session, id)
  return html`<section class="card ids-card" aria-label="Ids">
    <h2>Ids</h2>
    <dl class="pairs ids">
      ${idRow(app, html`Delivery, sent as <code>X-Webhook-Event-ID</code>`, 'delivery id', id)}
      ${idRow(app, 'Event', 'event id', eventId, placeLink('events', { event: eventId }))}
      ${idRow(app, 'Trace', 'trace id', traceId)} ${webhookIds(app, webhookId)}
      ${
        workflow === null
          ? nothing
          : html`<dt>Workflow</dt>
              <dd>
                <a href=${workflow} target="_blank" rel="noopener noreferrer">Open in the Temporal UI</a>
              </dd>`
      }
    </dl>
  </section>`
}

/**
 * Says which attempt a retry makes and what follows, and retries once that is confirmed.
 * @param {App} app
 * @param {Pick<Delivery, 'state' | 'attemptCount'>} delivery
 * @param {() => Promise<void>} retry
 */
export function openRetry(app, delivery, retry) {
  openConfirm(app, {
    label: 'Retry delivery',
    title: 'Retry this delivery?',
    text: html`<p>${retryInWords(app.session, delivery)}</p>`,
    button: 'Retry',
    isDanger: false,
    run: (close) => {
      close()
      return retry()
    },
  })
}

/**
 * @param {App} app
 * @param {() => Promise<void>} discard
 */
export function openDiscard(app, discard) {
  openConfirm(app, {
    label: 'Discard delivery',
    title: 'Discard this delivery?',
    text: html`<p>It is stopped and not attempted again, unless it is retried.</p>`,
    button: 'Discard',
    run: (close) => {
      close()
      return discard()
    },
  })
}

/**
 * When the payload was erased, and by whom.
 * @param {App} app
 * @param {NonNullable<EventDetail['payloadErased']>} erased
 */
export function erasedNote(app, { at, by }) {
  return html`<p class="note">
    Payload erased on ${app.times.at(at)} by <b>${by === app.session.member.id ? 'you' : by}</b>.
  </p>`
}

/**
 * The button that erases a payload, for members with full access while there is one.
 * @param {App} app
 * @param {string} eventId
 * @param {EventDetail['payloadErased']} erased
 * @param {() => Promise<void>} refresh
 * @returns {Template}
 */
export function eraseButton(app, eventId, erased, refresh) {
  if (erased !== null || !app.session.member.fullAccess) return nothing
  return html`<button type="button" class="danger" @click=${() => openErase(app, eventId, refresh)}>
    Erase payload
  </button>`
}

/**
 * @param {App} app
 * @param {string} eventId
 * @param {() => Promise<void>} refresh
 */
function openErase(app, eventId, refresh) {
  openConfirm(app, {
    label: 'Erase payload',
    title: 'Erase the payload of this event?',
    text: html`<p>
      The envelope and what endpoints answered to it are gone for good, for all webhooks. Deliveries that are
      open are stopped; an attempt that has begun finishes first. None of them can be retried or replayed.
      Ids, times and outcomes stay. What was delivered stays with its receivers, and in backups until they are
      deleted.
    </p>`,
    button: 'Erase',
    run: async (close) => {
      await app.api.erasePayload(eventId)
      close()
      app.showMessage('The payload is erased.')
      await refresh()
    },
  })
}

/**
 * Stands for what is not there yet, or may not be seen.
 * @param {Pick<App, 'times'>} app
 * @param {Answers} answers
 * @param {{ title: string, refused: string, heading?: (words: string) => Template }} options
 * @returns {Template}
 */
export function renderMissing(app, answers, { title, refused, heading = mainHeading }) {
  return [403, 404].includes(answers.status)
    ? html`<section class="empty">
        ${heading(refused)}
        <p>${answers.problem}</p>
      </section>`
    : html`${staleNote(app, answers)} ${heading(title)}
        <p class="faint">Loading …</p>`
}

/** @param {Template} words */
export function mainHeading(words) {
  return html`<h1 tabindex="-1">${words}</h1>`
}

/**
 * Sends test events, one at a time, and shows their delivery.
 * @param {App} app
 */
export function createTestSender(app) {
  const task = createTask(app, inWords, app.showMessage)
  return {
    isBusy: () => task.isBusy,
    /**
     * @param {string} webhookId
     * @param {string} [eventKey] whose example is sent
     */
    send: (webhookId, eventKey) =>
      task.run(async () => {
        const view = app.viewSignal()
        const { deliveryId } = await app.api.sendTest(webhookId, eventKey)
        if (!view.aborted) app.go(deliveryLink(webhookId, deliveryId))
        app.showMessage('A test event is on its way.')
      }),
  }
}

/** @typedef {ReturnType<typeof createTestSender>} TestSender */

/** A double click is one request, however fast the first one was answered. */
const ACT_AGAIN_AFTER_MS = 1_000

/**
 * Acts on deliveries, on each of them once at a time, and says what came of it.
 * @param {App} app
 * @param {() => Promise<void>} refresh
 */
export function createActs(app, refresh) {
  /** @type {Set<string>} */
  const acting = new Set()
  return {
    /** @param {string} id */
    isActing: (id) => acting.has(id),
    /**
     * @param {string} id
     * @param {() => Promise<unknown>} work
     * @param {string} [done]
     */
    act: async (id, work, done = 'It is attempted at once.') => {
      if (acting.has(id)) return
      acting.add(id)
      app.update()
      const pause = new Promise((resolve) => setTimeout(resolve, ACT_AGAIN_AFTER_MS))
      try {
        await work()
        app.showMessage(done)
      } catch (error) {
        app.showMessage(inWords(error))
      }
      await Promise.all([refresh(), pause])
      acting.delete(id)
      app.update()
    },
  }
}
