import { html, nothing, repeat } from '../lib/html.js'
import { webhookLink } from '../lib/links.js'
import { MANAGE, may } from '../lib/permissions.js'
import { HOUR_MS, plural } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import { keyField, rangeFields } from '../parts/filter-fields.js'
import { renderProgress } from '../parts/job-progress.js'
import { inWords, problemNote } from '../parts/problem.js'
import { closeButton, createTask } from '../parts/dialog.js'

/** @import { App, Overview, Replay, ReplayCount } from '../types.d.ts' */

/** The range that is proposed, and how long a replay is shown after it was requested. */
const PROPOSED_MS = 24 * HOUR_MS
const SHOWN_MS = HOUR_MS

/**
 * Sends past events to a webhook: the user says which, sees how many, and follows the job with the deliveries.
 * @param {App} app
 * @param {Overview} webhook
 */
export function openReplay(app, webhook) {
  const { id } = webhook
  let filter = { since: new Date(Date.now() - PROPOSED_MS).toISOString(), until: '', eventKey: '' }
  /** @type {Replay['include']} */
  let include = 'missing'
  let requestId = ''
  /** @type {ReplayCount | null} */
  let count = null
  const task = createTask(app)

  const body = () => {
    const { since, until, eventKey } = filter
    const eventKeys = eventKey === '' ? {} : { eventKeys: [eventKey] }
    return { since, ...(until === '' ? {} : { until }), ...eventKeys, include }
  }
  /** What is chosen now makes one job, however often it is requested. */
  const recount = async () => {
    const mine = (requestId = crypto.randomUUID())
    ;[count, task.problem] = [null, '']
    app.update()
    try {
      const counted = await app.api.countReplay(id, body())
      if (mine === requestId) count = counted
    } catch (error) {
      if (mine === requestId) task.problem = inWords(error)
    }
    app.update()
  }
  /** @param {Partial<typeof filter>} changes */
  const change = (changes) => {
    filter = { ...filter, ...changes }
    void recount()
  }
  /** @param {Event} event */
  const chooseInclude = ({ currentTarget }) => {
    include = /** @type {HTMLInputElement} */ (currentTarget).checked ? 'all' : 'missing'
    void recount()
  }
  const send = () =>
    task.run(async () => {
      await app.api.replay(id, body(), requestId)
      app.showMessage('The past events are on their way.')
      if (close()) app.go(webhookLink(id, 'deliveries'))
    })

  const close = app.openDialog({
    label: 'Send past events',
    task,
    render: () =>
      html`<h2>Send past events to ${nameOf(webhook)}</h2>
        <p>
          Events that were published before it was created, switched on or subscribed to them are sent as they
          were, each as a new delivery with an id of its own.
        </p>
        <div class="fields">
          <div class="filter">
            ${rangeFields(app, filter, change)} ${keyField(app, filter.eventKey, change)}
          </div>
          <label class="check"
            ><input type="checkbox" @change=${chooseInclude} />
            <span>Also what it already had <span class="hint">It gets these once more.</span></span></label
          >
        </div>
        <p role="status">${count === null ? nothing : countInWords(app, count, filter.since)}</p>
        ${count === null && task.problem === '' ? html`<p class="faint">Counting …</p>` : problemNote(task.problem)}
        <div class="buttons end">
          ${closeButton(close, task)}
          ${
            count !== null && mayHaveEvents(count)
              ? html`<button type="button" class="primary" ?disabled=${task.isBusy} @click=${send}>
                  Send (${amount(count)})
                </button>`
              : nothing
          }
        </div>`,
  })
  void recount()
}

/** @param {ReplayCount} count */
const mayHaveEvents = ({ total, isTotalExact }) => total > 0 || !isTotalExact

/** @param {ReplayCount} count */
const amount = ({ total, isTotalExact }) => `${total.toLocaleString()}${isTotalExact ? '' : '+'}`

/**
 * @param {App} app
 * @param {ReplayCount} count
 * @param {string} requested
 */
function countInWords({ times }, count, requested) {
  const { since, until, total, isTotalExact } = count
  const events = `${isTotalExact ? '' : 'At least '}${plural(total, 'event')}`
  const isCut = Date.parse(since) > Date.parse(requested)
  return html`${mayHaveEvents(count) ? events : 'No event'} from ${times.at(since)} until ${times.at(until)}.
  ${isCut ? 'Nothing older is kept.' : ''}`
}

/**
 * The replays to a webhook that run, or were requested lately.
 * @param {App} app
 * @param {string} webhookId
 */
export function createReplays(app, webhookId) {
  /** @type {Replay[] | null} */
  let replays = null
  const task = createTask(app)
  const read = async () => {
    const { data } = await app.api.replays(webhookId)
    replays = data.filter(
      ({ state, createdAt }) => state === 'running' || Date.now() - Date.parse(createdAt) < SHOWN_MS,
    )
  }
  /** @param {string} jobId */
  const cancel = (jobId) =>
    task.run(async () => {
      await app.api.cancelReplay(webhookId, jobId)
      await read()
    })
  return {
    /** Reads them again while one of them runs. */
    async refresh() {
      if (replays === null || replays.some(({ state }) => state === 'running')) await read()
    },
    render: () =>
      html`${problemNote(task.problem)}
      ${repeat(
        replays ?? [],
        ({ id }) => id,
        (job) =>
          html`<section class="job" aria-label="Replay of past events">
            <p>Past events from ${app.times.at(job.since)} until ${app.times.at(job.until)}</p>
            ${renderProgress(job)}
            ${
              job.state === 'running' && may(app.session, MANAGE)
                ? html`<button
                    type="button"
                    class="quiet"
                    ?disabled=${task.isBusy}
                    @click=${() => cancel(job.id)}
                  >
                    Cancel
                  </button>`
                : nothing
            }
          </section>`,
      )}`,
  }
}
