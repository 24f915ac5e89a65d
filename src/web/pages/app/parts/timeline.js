import { html, nothing } from '../lib/html.js'
import { duration, isOverdue, milliseconds, plural } from '../lib/times.js'
import { mark, stateInWords } from './state-mark.js'

/** @import { App, Attempt, AuditEntry, DeliveryDetail, Template } from '../types.d.ts' */

/**
 * The attempts on the schedule: those that were made, one of which is chosen, the next one with its time, and those that
 * would follow. Retries on request follow the schedule. The API gives the latest of many.
 * @param {App} app
 * @param {DeliveryDetail} delivery
 * @param {{ number: number | null, choose(number: number): void }} choice the attempt that is shown whole
 * @returns {Template}
 */
export function renderTimeline(app, delivery, choice) {
  const scheduled = delivery.isTest ? 1 : app.session.retryWaitsMs.length + 1
  const first = delivery.attempts[0]?.number ?? 1
  const isOver = delivery.completedAt !== null
  const last = isOver ? delivery.attemptCount : Math.max(scheduled, delivery.attemptCount)
  const numbers = Array.from({ length: last - first + 1 }, (_, index) => first + index)
  return html`${first === 1 ? nothing : html`<p class="hint">${plural(first - 1, 'earlier attempt')} ${first === 2 ? 'is' : 'are'} not shown.</p>`}
    <ol class="timeline">
      ${numbers.map((number) => renderStep(app, delivery, number, choice))}
    </ol>
    ${isOver ? html`<p class="hint">${endInWords(delivery, scheduled)}</p>` : nothing}`
}

/**
 * @param {App} app
 * @param {DeliveryDetail} delivery
 * @param {number} number
 * @param {{ number: number | null, choose(number: number): void }} choice
 */
function renderStep(app, delivery, number, choice) {
  const made = delivery.attempts.find((attempt) => attempt.number === number)
  if (made !== undefined) return html`<li class="made ${made.outcome}">${renderMade(app, made, choice)}</li>`
  const isNext = number === delivery.attemptCount + 1
  const waitMs = app.session.retryWaitsMs[number - 2]
  if (isNext && delivery.completedAt === null)
    return html`<li class="next">
      <p><b>Attempt ${number}</b> ${nextInWords(app, delivery)}</p>
    </li>`
  const wait = waitMs === undefined ? '' : `${duration(waitMs)} after the one before`
  return html`<li class="later">
    <p><b>Attempt ${number}</b> <span>${wait}</span></p>
  </li>`
}

/** @type {Record<NonNullable<DeliveryDetail['stopReason']>, string>} */
const STOPPED_BECAUSE = {
  webhook_disabled: 'Stopped: the webhook was switched off',
  webhook_deleted: 'Stopped: the webhook was deleted',
  unsubscribed: 'Stopped: its event key was removed from the subscription',
  discarded: 'Discarded by a user',
  test_failed: 'A test event is attempted once',
  payload_erased: 'Stopped: its payload was erased',
}

/**
 * @param {Pick<DeliveryDetail, 'stopReason'>} delivery
 * @returns {string}
 */
export function stopInWords({ stopReason }) {
  return stopReason === null ? 'Stopped' : STOPPED_BECAUSE[stopReason]
}

/** The latest entries of a webhook; what was stopped longer ago stays without a name. */
const SEARCHED = '100'

/**
 * Returns the entry of the audit trail about what stopped the delivery; null where it is not found, or not for this
 * member.
 * @param {App} app
 * @param {DeliveryDetail} delivery
 * @returns {Promise<AuditEntry | null>}
 */
export async function findStop(app, delivery) {
  if (!app.session.member.fullAccess || delivery.completedAt === null) return null
  const { data } = await app.api.audit({ webhookId: delivery.webhookId, limit: SEARCHED })
  // Newest first: the act is recorded in the transaction that stops the delivery.
  return data.find((entry) => isStopOf(entry, delivery)) ?? null
}

/**
 * @param {AuditEntry} entry
 * @param {DeliveryDetail} delivery
 */
function isStopOf({ action, deliveryId, at }, { id, stopReason, completedAt }) {
  const isSameAct = Math.abs(Date.parse(at) - Date.parse(completedAt ?? '')) < 1_000
  switch (stopReason) {
    case 'discarded':
      return deliveryId === id
        ? action === 'delivery.discarded'
        : action === 'deliveries.discarded' && isSameAct
    case 'webhook_disabled':
      return (action === 'webhook.updated' || action === 'webhook.held') && isSameAct
    case 'unsubscribed':
      return action === 'webhook.updated' && isSameAct
    case 'webhook_deleted':
      return action === 'webhook.deleted' && isSameAct
    default:
      return false
  }
}

/**
 * Why no attempt follows, and how many of the schedule were not made.
 * @param {DeliveryDetail} delivery
 * @param {number} scheduled
 */
function endInWords({ state, stopReason, attemptCount }, scheduled) {
  const left = Math.max(0, scheduled - attemptCount)
  const rest =
    left === 0 ? '' : `; ${plural(left, 'attempt')} of the schedule ${left === 1 ? 'was' : 'were'} not made`
  if (state === 'completed')
    return left === 0 ? 'Completed.' : `Completed; ${plural(left, 'further attempt')} not needed.`
  if (state === 'failed') return 'Permanently failed: all attempts failed.'
  return `${stopInWords({ stopReason })}${stopReason === 'test_failed' ? '' : rest}.`
}

/**
 * @param {App} app
 * @param {DeliveryDetail} delivery
 */
function nextInWords({ times }, { state, nextAttemptAt, pausedSince, createdAt, queue }) {
  if (state === 'in_progress') return html`<span class="mark busy">In progress</span>`
  if (pausedSince !== null) return html`<span class="mark warn">Paused in Temporal</span>`
  if (nextAttemptAt === null) return queueInWords(Date.now() - Date.parse(createdAt), queue)
  const due = isOverdue(nextAttemptAt)
    ? `Overdue for ${duration(Date.now() - Date.parse(nextAttemptAt))}`
    : html`Due ${times.until(nextAttemptAt)}`
  return html`<span class="mark warn">${due}</span> <span class="faint">${times.at(nextAttemptAt)}</span>`
}

/** A first attempt begins within this time where the endpoint has a free slot. */
const QUEUED_AFTER_MS = 5_000

/**
 * What a first attempt waits for.
 * @param {number} forMs since the delivery was accepted
 * @param {DeliveryDetail['queue']} queue
 */
function queueInWords(forMs, queue) {
  if (queue === null || forMs < QUEUED_AFTER_MS) return html`<span class="mark busy">Due now</span>`
  const { before, isEndpointSlow } = queue
  const reasons = [
    ...(isEndpointSlow ? ['this endpoint answers slowly'] : []),
    ...(before === 0 ? [] : [`${before.toLocaleString()} before it`]),
  ]
  const why = reasons.length === 0 ? '' : `: ${reasons.join(', ')}`
  return html`<span class="mark warn">${stateInWords('pending')} for ${duration(forMs)}${why}</span>`
}

/**
 * @param {Pick<Attempt, 'statusCode' | 'outcome'>} attempt
 * @returns {Template}
 */
export function outcomeMark({ statusCode, outcome }) {
  const words = statusCode === null ? 'No answer' : `HTTP ${String(statusCode)}`
  return mark(outcome === 'succeeded' ? 'good' : 'bad', words)
}

/**
 * @param {App} app
 * @param {Attempt} attempt
 * @param {{ number: number | null, choose(number: number): void }} choice
 */
function renderMade({ times }, attempt, choice) {
  const { number, trigger, startedAt, durationMs } = attempt
  const isChosen = choice.number === number
  return html`<p>
      <button
        type="button"
        class="chooser"
        aria-pressed=${isChosen ? 'true' : 'false'}
        @click=${() => choice.choose(number)}
      >
        Attempt ${number}
      </button>
      ${outcomeMark(attempt)}
      ${trigger === 'retry' ? html`<span class="mark calm">requested by a user</span>` : nothing}
    </p>
    <p class="hint">${times.at(startedAt)}, took ${milliseconds(durationMs)}</p>`
}
