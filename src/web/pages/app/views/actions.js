import { html, nothing } from '../lib/html.js'
import { plural } from '../lib/times.js'
import { inWords, problemNote } from '../parts/problem.js'

/** @import { App, Overview, RetryJob } from '../types.d.ts' */

/**
 * Something that touches many deliveries. `count` says how many, just before it is done; `run` gives the job that does
 * it in the background, or what to say where it is done already.
 * @typedef {{
 *   title: string, button: string, danger?: boolean,
 *   explain(count: number): string, nothingToDo: string,
 *   count(): Promise<number>, run(): Promise<RetryJob | string>,
 * }} Action
 */

const PROGRESS_EVERY_MS = 400

/**
 * @param {App} app
 * @param {string} id
 */
async function find(app, id) {
  const { data } = await app.api.overview()
  const found = data.find((webhook) => webhook.id === id)
  if (found === undefined) throw new Error('the webhook is gone')
  return found
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Action}
 */
export const retryFailedAction = (app, { id, name }) => ({
  title: `Retry failed deliveries of ${name}`,
  button: 'Retry failed',
  explain: (count) =>
    `${plural(count, 'permanently failed delivery')} ${count === 1 ? 'gets' : 'get'} one attempt at once. Those that wait for their retry are left alone.`,
  nothingToDo: 'No delivery of this webhook is permanently failed.',
  count: async () => (await find(app, id)).permanentlyFailed,
  run: () => app.api.retryDeliveries({ mode: 'failed', id }),
})

/**
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Action}
 */
export const forceAction = (app, { id, name }) => ({
  title: `Force retry of ${name}`,
  button: 'Force retry',
  explain: (count) =>
    `${plural(count, 'delivery')} that ${count === 1 ? 'waits or is' : 'wait or are'} permanently failed ${count === 1 ? 'is' : 'are'} attempted at once, whatever the schedule says.`,
  nothingToDo: 'No delivery of this webhook waits or is permanently failed.',
  count: async () => unresolved([await find(app, id)]),
  run: () => app.api.retryDeliveries({ mode: 'force', id }),
})

/**
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Action}
 */
export const resumeStoppedAction = (app, { id, name }) => ({
  title: `Resume stopped deliveries of ${name}`,
  button: 'Resume stopped',
  explain: (count) =>
    `${plural(count, 'stopped delivery')} ${count === 1 ? 'is' : 'are'} attempted at once and then retried on the schedule. Discarded deliveries, and those of event keys that are no longer subscribed, are left alone.`,
  nothingToDo: 'No delivery of this webhook is stopped.',
  count: async () => (await find(app, id)).stopped,
  run: () => app.api.retryDeliveries({ mode: 'stopped', id }),
})

/**
 * @param {App} app
 * @returns {Action}
 */
export const forceAllAction = (app) => ({
  title: 'Force retry of all webhooks',
  button: 'Force retry all',
  explain: (count) =>
    `${plural(count, 'delivery')} of all webhooks that are switched on, waiting or permanently failed, ${count === 1 ? 'is' : 'are'} attempted at once, whatever the schedule says.`,
  nothingToDo: 'No delivery waits or is permanently failed at a webhook that is switched on.',
  count: async () => unresolved((await app.api.overview()).data.filter(({ enabled }) => enabled)),
  run: () => app.api.retryDeliveries({ mode: 'force' }),
})

/**
 * @param {App} app
 * @param {Overview} webhook
 * @returns {Action}
 */
export const discardFailedAction = (app, { id, name }) => ({
  title: `Discard failed deliveries of ${name}`,
  button: 'Discard failed',
  danger: true,
  explain: (count) =>
    `${plural(count, 'permanently failed delivery')} ${count === 1 ? 'is' : 'are'} given up. The incident ends when nothing else is open.`,
  nothingToDo: 'No delivery of this webhook is permanently failed.',
  count: async () => (await find(app, id)).permanentlyFailed,
  run: async () => `Discarded ${plural((await app.api.discardFailed(id)).discarded, 'delivery')}.`,
})

/** @param {readonly Overview[]} webhooks */
function unresolved(webhooks) {
  return webhooks.reduce(
    (sum, { waitingForRetry, permanentlyFailed }) => sum + waitingForRetry + permanentlyFailed,
    0,
  )
}

/**
 * Says what the action will touch, does it when it is confirmed, and shows how far it has come.
 * @param {App} app
 * @param {Action} action
 * @param {() => Promise<void>} refresh
 */
export function openAction(app, action, refresh) {
  /** @type {number | null} */
  let count = null
  /** @type {RetryJob | null} */
  let job = null
  let [isBusy, isOpen] = [false, true]
  let problem = ''

  /** @param {() => Promise<void>} work */
  const attempt = async (work) => {
    isBusy = true
    problem = ''
    app.update()
    try {
      await work()
    } catch (error) {
      problem = inWords(error)
    } finally {
      isBusy = false
      app.update()
    }
  }
  /** @param {RetryJob} started */
  const follow = async (started) => {
    job = started
    while (job.state === 'running' && isStillOpen()) {
      app.update()
      await new Promise((resolve) => setTimeout(resolve, PROGRESS_EVERY_MS))
      job = await app.api.retryJob(started.id)
    }
    await refresh()
  }
  // Read anew: the dialog may be closed while the job is asked for.
  const isStillOpen = () => isOpen
  const run = () =>
    attempt(async () => {
      const done = await action.run()
      if (typeof done !== 'string') return follow(done)
      app.closeDialog()
      app.say(done)
      await refresh()
    })

  app.openDialog({
    label: action.title,
    onClose: () => {
      isOpen = false
    },
    render: () =>
      html`<h2>${action.title}</h2>
        ${job === null ? question(action, count) : progress(job)} ${problemNote(problem)}
        <div class="buttons end">
          <button type="button" @click=${() => app.closeDialog()}>
            ${job === null ? 'Cancel' : 'Close'}
          </button>
          ${
            job === null && count !== null && count > 0
              ? html`<button
                  type="button"
                  class=${action.danger === true ? 'danger' : 'primary'}
                  ?disabled=${isBusy}
                  @click=${run}
                >
                  ${action.button} (${count.toLocaleString('en-GB')})
                </button>`
              : nothing
          }
        </div>`,
  })
  void attempt(async () => {
    count = await action.count()
  })
}

/**
 * @param {Action} action
 * @param {number | null} count
 */
function question(action, count) {
  if (count === null) return html`<p class="faint">Counting …</p>`
  return html`<p>${count === 0 ? action.nothingToDo : action.explain(count)}</p>`
}

/** @param {RetryJob} job */
function progress({ state, done, total, succeeded, failed }) {
  const [good, bad] = [succeeded, failed].map((count) => count.toLocaleString('en-GB'))
  const words = `${done.toLocaleString('en-GB')} of ${plural(total, 'delivery')} attempted: ${good} delivered, ${bad} failed`
  return html`<p class="progress" role="status">
      ${state === 'done' ? html`<span class="mark good">Done</span>` : html`<span class="mark busy">Under way</span>`}
      ${words}
    </p>
    <progress aria-label="Progress" max=${Math.max(total, 1)} .value=${total === 0 ? 1 : done}></progress>
    ${state === 'done' ? nothing : html`<p class="hint">It goes on when you close this.</p>`}`
}
