import { html, nothing } from '../lib/html.js'
import { deliveriesLink } from '../lib/links.js'
import { lackingToManage, MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { nameOf, shortName } from '../parts/address.js'
import { staleNote } from '../parts/problem.js'
import { stateMark } from '../parts/state-mark.js'
import { findStop, renderTimeline, stopInWords } from '../parts/timeline.js'
import {
  createActs,
  erasedNote,
  eraseButton,
  mainHeading,
  openDiscard,
  openRetry,
  renderIds,
  renderMissing,
} from './delivery-parts.js'
import { createExchange } from './exchange.js'

/** @import { App, AuditEntry, DeliveryDetail, Overview, Template, View } from '../types.d.ts' */

/** What is over changes only when it is retried; a long wait seldom ends before its time. */
const MIN_PAUSE_MS = 1_000
const FINAL_PAUSE_MS = 5_000
const MAX_PAUSE_MS = 15_000

/** @param {DeliveryDetail | null} delivery */
function pauseMs(delivery) {
  if (delivery === null) return MIN_PAUSE_MS
  if (delivery.completedAt !== null) return FINAL_PAUSE_MS
  const leftMs = delivery.nextAttemptAt === null ? 0 : Date.parse(delivery.nextAttemptAt) - Date.now()
  return Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, leftMs / 4))
}

/**
 * One delivery: its attempts on the schedule, and of one of them what was sent and what came back.
 * @param {App} app
 * @param {string} webhookId
 * @param {string} id
 * @param {boolean} [isBeside] beside a list, whose page has a heading and breadcrumbs of its own
 * @returns {View}
 */
export function createDeliveryView(app, webhookId, id, isBeside = false) {
  /** @type {DeliveryDetail | null} */
  let delivery = null
  /** @type {Overview | null} */
  let webhook = null
  /** What stopped it, of the stop at that time. @type {{ at: string | null, entry: AuditEntry | null } | null} */
  let stop = null
  /** The attempt that is shown; null for the latest one. @type {number | null} */
  let chosen = null
  /** @param {Template} words */
  const heading = (words) => (isBeside ? html`<h2 tabindex="-1">${words}</h2>` : mainHeading(words))
  const exchange = createExchange(app, () => app.api.deliveryRequest(webhookId, id))

  /** Its name, and what belongs to it; the delivery is shown without them too. */
  const loadWebhook = async () => {
    if (webhook !== null) return
    const { data } = await app.api.overview()
    webhook = data.find((candidate) => candidate.id === webhookId) ?? null
  }
  /** @param {DeliveryDetail} shown */
  const loadStop = async (shown) => {
    const at = shown.completedAt
    if (stop?.at !== at) stop = { at, entry: shown.state === 'stopped' ? await findStop(app, shown) : null }
  }
  const polling = poll(
    app,
    async () => {
      delivery = await app.api.delivery(webhookId, id)
      app.update()
      await Promise.all([loadWebhook(), loadStop(delivery)])
    },
    () => pauseMs(delivery),
  )
  const { isActing, act } = createActs(app, polling.refresh)
  const retry = () => act(id, () => app.api.retryOne(webhookId, id))
  const askToRetry = () => delivery !== null && openRetry(app, delivery, retry)
  const discard = () => openDiscard(app, () => act(id, () => app.api.discardOne(webhookId, id), 'Discarded.'))
  const choose = (/** @type {number} */ number) => {
    chosen = number === delivery?.attempts.at(-1)?.number ? null : number
    app.update()
  }

  return {
    get title() {
      return delivery === null ? 'Delivery' : `${delivery.eventKey} · ${webhookName(delivery)}`
    },
    stop: polling.stop,
    render: () =>
      html`${isBeside ? nothing : crumbs()}
      ${
        delivery === null
          ? renderMissing(app, polling.answers, {
              title: 'Delivery',
              refused: 'This delivery cannot be shown',
              heading,
            })
          : html`${staleNote(app, polling.answers)} ${body(delivery)}`
      }`,
  }

  function crumbs() {
    return html`<p class="crumbs">
      <a href="/developer">Webhooks</a> <span aria-hidden="true">›</span>
      <a href=${deliveriesLink(webhookId)}>${delivery === null ? 'Webhook' : webhookName(delivery)}</a>
    </p>`
  }

  /** @param {DeliveryDetail} shown */
  function webhookName({ attempts }) {
    if (webhook !== null) return nameOf(webhook)
    const url = attempts.at(-1)?.url
    return url === undefined ? 'Webhook' : shortName(url)
  }

  /** @param {DeliveryDetail} shown */
  function body(shown) {
    const { attempts, eventKey, eventId, state, createdAt, pausedSince, payloadErased, isTest } = shown
    const attempt = attempts.find(({ number }) => number === chosen) ?? attempts.at(-1)
    return html`<div class="heading">
        <div>
          ${heading(html`<span class="mono">${eventKey}</span>`)}
          <p>${stateMark(state)} <span class="faint">published ${app.times.at(createdAt)}</span></p>
        </div>
        <div class="buttons">
          ${may(app.session, MANAGE) && state !== 'completed' && !isTest ? buttons(shown) : nothing}
          ${eraseButton(app, eventId, payloadErased, polling.refresh)}
        </div>
      </div>
      ${payloadErased === null ? nothing : erasedNote(app, payloadErased)}
      ${state === 'stopped' ? stopNote(shown) : nothing}
      ${
        pausedSince === null
          ? nothing
          : html`<p class="note paused">
              Paused in Temporal since ${app.times.at(pausedSince)}. No attempt is made until it is unpaused
              there.
            </p>`
      }
      <div class="delivery">
        <div>
          <section class="card" aria-label="Attempts">
            <h2>Attempts</h2>
            ${renderTimeline(app, shown, { number: attempt?.number ?? null, choose })}
          </section>
          ${renderIds(app, shown)}
        </div>
        <div class="exchanges">
          ${exchange.render(shown, attempt, lackingToManage(app, webhook?.subscribedEventKeys ?? [eventKey]))}
        </div>
      </div>`
  }

  /** @param {DeliveryDetail} shown */
  function buttons({ state, payloadErased }) {
    return html`${
      payloadErased === null
        ? html`<button type="button" ?disabled=${isActing(id)} @click=${askToRetry}>Retry now</button>`
        : nothing
    }
    ${
      state === 'waiting' || state === 'failed'
        ? html`<button type="button" class="danger" ?disabled=${isActing(id)} @click=${discard}>
            Discard
          </button>`
        : nothing
    }`
  }

  /** @param {DeliveryDetail} shown */
  function stopNote(shown) {
    const who = stop?.entry?.memberId ?? stop?.entry?.details['actor']
    const by = who === app.session.member.id ? 'you' : String(who)
    return html`<p class="note stop">
      ${stopInWords(shown)}${shown.completedAt === null ? nothing : html`, ${app.times.at(shown.completedAt)}`}${who === undefined ? nothing : html`, by <b>${by}</b>`}.
    </p>`
  }
}
