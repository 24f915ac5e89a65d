import { ApiProblem } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'
import { webhookLink, workflowLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { poll } from '../lib/poll.js'
import { hostOf } from '../parts/address.js'
import { createPayload } from '../parts/payload.js'
import { inWords, problemNote } from '../parts/problem.js'
import { stateMark } from '../parts/state-mark.js'
import { renderTimeline } from '../parts/timeline.js'

/** @import { App, DeliveryDetail, View } from '../types.d.ts' */

const EVERY_MS = 1_000

/** What is over changes only when somebody brings it back. */
const FINAL_EVERY_MS = 5_000

/**
 * One delivery: its attempts on the schedule, what came back, and its payload.
 * @param {App} app
 * @param {string} webhookId
 * @param {string} id
 * @returns {View}
 */
export function createDeliveryView(app, webhookId, id) {
  /** @type {DeliveryDetail | null} */
  let delivery = null
  let [problem, refused] = ['', '']
  let lookedAt = 0
  const payload = createPayload(app)
  const load = async () => {
    const isFinal = delivery !== null && delivery.completedAt !== null
    if (isFinal && Date.now() - lookedAt < FINAL_EVERY_MS) return
    lookedAt = Date.now()
    try {
      delivery = await app.api.delivery(webhookId, id)
      problem = ''
    } catch (error) {
      const isRefused = error instanceof ApiProblem && [403, 404].includes(error.problem.status)
      refused = isRefused ? inWords(error) : ''
      problem = isRefused ? '' : inWords(error)
      throw error
    } finally {
      app.update()
    }
  }
  const asking = poll(load, EVERY_MS)

  /**
   * @param {() => Promise<unknown>} work
   * @param {string} done
   */
  const act = async (work, done) => {
    try {
      await work()
      app.say(done)
    } catch (error) {
      app.say(inWords(error))
    }
    lookedAt = 0
    await asking.refresh()
  }
  const retry = () => act(() => app.api.retryOne(webhookId, id), 'It is attempted at once.')
  const discard = () => openDiscard(app, () => act(() => app.api.discardOne(webhookId, id), 'Discarded.'))

  return {
    title: 'Delivery',
    stop: asking.stop,
    render: () =>
      html`<p class="crumbs">
          <a href="/developer">Webhooks</a> <span aria-hidden="true">›</span>
          <a href=${webhookLink(webhookId)}>${delivery === null ? 'Webhook' : webhookName(delivery)}</a>
        </p>
        ${problemNote(problem)} ${delivery === null ? missing(refused) : body(delivery)}`,
  }

  /** @param {DeliveryDetail} shown */
  function body(shown) {
    const { eventKey, state, eventId, createdAt, payloadText } = shown
    const workflow = workflowLink(app.session, id)
    const mayManage = may(app.session, MANAGE)
    return html`<div class="heading">
        <div>
          <h1 tabindex="-1"><span class="mono">${eventKey}</span></h1>
          <p>${stateMark(state)} <span class="faint">accepted ${app.times.at(createdAt)}</span></p>
        </div>
        ${
          mayManage && state !== 'completed'
            ? html`<div class="buttons">
                <button type="button" @click=${retry}>Retry now</button>
                ${
                  state === 'waiting' || state === 'failed'
                    ? html`<button type="button" class="danger" @click=${discard}>Discard</button>`
                    : nothing
                }
              </div>`
            : nothing
        }
      </div>
      <div class="columns">
        <div>
          <section class="card">
            <h2>Attempts</h2>
            ${renderTimeline(app, shown)}
          </section>
        </div>
        <div>
          <section class="card">${payload.render(payloadText)}</section>
          <section class="card">
            <h2>Details</h2>
            <dl class="pairs">
              <dt>Delivery, sent as <code>X-Webhook-Event-ID</code></dt>
              <dd class="mono">${id}</dd>
              <dt>Event</dt>
              <dd class="mono">${eventId}</dd>
              ${
                workflow === null
                  ? nothing
                  : html`<dt>Workflow</dt>
                      <dd>
                        <a href=${workflow} target="_blank" rel="noopener noreferrer"
                          >Open in the Temporal UI</a
                        >
                      </dd>`
              }
            </dl>
          </section>
        </div>
      </div>`
  }
}

/** @param {DeliveryDetail} delivery */
function webhookName({ attempts }) {
  const url = attempts.at(-1)?.url
  return url === undefined ? 'Webhook' : hostOf(url)
}

/** @param {string} refused */
function missing(refused) {
  return refused === ''
    ? html`<h1 tabindex="-1">Delivery</h1>
        <p class="faint">Loading …</p>`
    : html`<section class="empty">
        <h1 tabindex="-1">This delivery cannot be shown</h1>
        <p>${refused}</p>
      </section>`
}

/**
 * @param {App} app
 * @param {() => Promise<void>} discard
 */
function openDiscard(app, discard) {
  const confirm = () => {
    app.closeDialog()
    void discard()
  }
  app.openDialog({
    label: 'Discard delivery',
    render: () =>
      html`<h2>Discard this delivery?</h2>
        <p>It is given up and not attempted again, unless somebody retries it.</p>
        <div class="buttons end">
          <button type="button" @click=${() => app.closeDialog()}>Cancel</button>
          <button type="button" class="danger" @click=${confirm}>Discard</button>
        </div>`,
  })
}
