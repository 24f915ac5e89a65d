import { isTransient } from '../lib/api.js'
import { html, nothing } from '../lib/html.js'
import { placeLink } from '../lib/links.js'
import { forgetJob, recallJob, rememberJob, renderProgress } from '../parts/job-progress.js'
import { plural } from '../lib/times.js'
import { nameOf } from '../parts/address.js'
import { inWords, problemNote } from '../parts/problem.js'
import { closeButton, createTask } from '../parts/dialog.js'
import { previewRetry } from './retry-preview.js'

/** @import { App, Overview, RetryJob, Template } from '../types.d.ts' */

/**
 * Something that touches many deliveries. `count` returns how many, just before it is done, and `prices` which attempts it
 * makes; `run` returns the job that does it in the background, or a message when it is already done. With `onDone`, the
 * page shows the progress, not the dialog.
 * @typedef {{
 *   key: string, title: string, button: string, danger?: boolean, about?: Template,
 *   explain(count: number): string, prices?: () => Promise<Template>, nothingToDo: string, amount?: (count: number) => string,
 *   count(): Promise<number>, run(requestId: string): Promise<RetryJob | string>, onDone?: (job: RetryJob | null) => void,
 * }} Action
 */

const PROGRESS_EVERY_MS = 400
const MAX_PROGRESS_DELAY_MS = 10_000

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
 * What can be done to the deliveries of one webhook, by its name; `open`: how many of them it affects.
 * @type {Record<'failed' | 'force' | 'stopped' | 'discard', {
 *   title: string, button: string, explain(count: number): string, nothingToDo: string,
 *   open: (webhook: Overview) => number,
 * }>}
 */
export const ACTIONS = {
  failed: {
    title: 'Retry failed deliveries',
    button: 'Retry failed',
    explain: (count) =>
      `${plural(count, 'permanently failed delivery')} ${count === 1 ? 'gets' : 'get'} one attempt at once; what fails stays permanently failed. Those that wait for their retry are left alone.`,
    nothingToDo: 'No delivery of this webhook is permanently failed.',
    open: ({ permanentlyFailed }) => permanentlyFailed,
  },
  force: {
    title: 'Force retry',
    button: 'Force retry',
    explain: (count) =>
      `${plural(count, 'delivery')} that ${count === 1 ? 'waits or is' : 'wait or are'} permanently failed ${count === 1 ? 'is' : 'are'} attempted at once, whatever the schedule says. It counts as the next attempt of each; what has had all of them gets one more.`,
    nothingToDo: 'No delivery of this webhook waits or is permanently failed.',
    open: (webhook) => unresolved([webhook]),
  },
  stopped: {
    title: 'Resume stopped deliveries',
    button: 'Resume stopped',
    explain: (count) =>
      `${plural(count, 'stopped delivery')} ${count === 1 ? 'is' : 'are'} attempted at once, which counts as the next attempt of each, and then retried on the schedule. Discarded deliveries, and those of event keys that are no longer subscribed, are left alone.`,
    nothingToDo: 'No delivery of this webhook is stopped.',
    open: ({ stopped }) => stopped,
  },
  discard: {
    title: 'Discard failed deliveries',
    button: 'Discard failed',
    explain: (count) =>
      `${plural(count, 'permanently failed delivery')} ${count === 1 ? 'is' : 'are'} stopped. The incident ends when nothing else is open.`,
    nothingToDo: 'No delivery of this webhook is permanently failed.',
    open: ({ permanentlyFailed }) => permanentlyFailed,
  },
}

/**
 * @param {App} app
 * @param {Overview} webhook
 * @param {keyof typeof ACTIONS} name
 * @returns {Action}
 */
export function webhookAction(app, webhook, name) {
  const { title, open, ...words } = ACTIONS[name]
  const { id } = webhook
  return {
    ...words,
    key: `${name}:${id}`,
    title: `${title} of ${nameOf(webhook)}`,
    danger: name === 'discard',
    count: async () => open(await find(app, id)),
    ...(name === 'force' && { prices: () => previewRetry(app, [id]) }),
    run: async (requestId) => {
      if (name !== 'discard') return app.api.retryDeliveries({ mode: name, id }, requestId)
      return `Discarded ${plural((await app.api.discardFailed(id)).discarded, 'delivery')}.`
    },
  }
}

/**
 * @param {App} app
 * @returns {Action}
 */
export const forceAllAction = (app) => ({
  key: 'force',
  title: 'Force retry of all webhooks',
  button: 'Force retry all',
  explain: (count) =>
    `${plural(count, 'delivery')} of all enabled webhooks, waiting or permanently failed, ${count === 1 ? 'is' : 'are'} attempted at once, whatever the schedule says. It counts as the next attempt of each; what has had all of them gets one more.`,
  prices: async () =>
    previewRetry(
      app,
      (await app.api.overview()).data
        .filter(({ enabled, waitingForRetry }) => enabled && waitingForRetry > 0)
        .map(({ id }) => id),
    ),
  nothingToDo: 'No delivery waits or is permanently failed at a webhook that is switched on.',
  count: async () => unresolved((await app.api.overview()).data.filter(({ enabled }) => enabled)),
  run: (requestId) => app.api.retryDeliveries({ mode: 'force' }, requestId),
})

/** @param {readonly Overview[]} webhooks */
function unresolved(webhooks) {
  return webhooks.reduce(
    (sum, { waitingForRetry, permanentlyFailed }) => sum + waitingForRetry + permanentlyFailed,
    0,
  )
}

/**
 * Shows what the action will affect, runs it after confirmation, and shows its progress.
 * @param {App} app
 * @param {Action} action
 * @param {() => Promise<void>} refresh
 */
export function openAction(app, action, refresh) {
  const requestId = crypto.randomUUID()
  /** @type {number | null} */
  let count = null
  /** @type {Template} */
  let prices = nothing
  /** @type {RetryJob | null} */
  let job = null
  /** What was started before, and has ended since. @type {RetryJob | null} */
  let ended = null
  let isOpen = true
  const task = createTask(app)

  /** @param {RetryJob} started */
  const follow = async (started) => {
    job = started
    rememberJob(action.key, job.id)
    let failures = 0
    while (job.state === 'running' && isStillOpen()) {
      app.update()
      const pause = Math.min(PROGRESS_EVERY_MS * 2 ** failures, MAX_PROGRESS_DELAY_MS)
      await new Promise((resolve) => setTimeout(resolve, pause))
      try {
        job = await app.api.retryJob(started.id)
        ;[failures, task.problem] = [0, '']
      } catch (error) {
        if (!isTransient(error)) throw error
        failures++
        task.problem = `${inWords(error)} The progress is read again in a moment.`
      }
    }
    if (job.state === 'done') forgetJob(action.key)
    await refresh()
  }
  // Read again: the dialog may be closed while the job is created.
  const isStillOpen = () => isOpen
  const run = () =>
    task.run(async () => {
      const done = await action.run(requestId)
      const job = typeof done === 'string' ? null : done
      if (job !== null && !isOpen) app.showMessage(`${action.title}: in progress.`)
      if (job !== null && action.onDone === undefined) return follow(job)
      close()
      action.onDone?.(job)
      if (typeof done === 'string') app.showMessage(done)
      await refresh()
    })

  const close = app.openDialog({
    label: action.title,
    task,
    onClose: () => {
      isOpen = false
    },
    render: () =>
      html`<h2>${action.title}</h2>
        ${ended === null ? nothing : renderProgress(ended)}
        ${job === null ? question(action, count, prices) : progress(job)} ${problemNote(task.problem)}
        <div class="buttons end">
          ${closeButton(close, { isBusy: job !== null || (count !== null && task.isBusy) })}
          ${
            job === null && count !== null && count > 0
              ? html`<button
                  type="button"
                  class=${action.danger === true ? 'danger' : 'primary'}
                  ?disabled=${task.isBusy}
                  @click=${run}
                >
                  ${action.button} (${action.amount?.(count) ?? count.toLocaleString()})
                </button>`
              : nothing
          }
        </div>`,
  })
  void task.run(async () => {
    const recalled = await recall(app, action)
    if (recalled?.state === 'running') return follow(recalled)
    ended = recalled
    const counted = await action.count()
    if (counted > 0 && action.prices !== undefined) prices = await action.prices()
    count = counted
  })
}

/**
 * Returns the job of this action that this browser tab started and whose end it has not shown.
 * @param {App} app
 * @param {Action} action
 */
async function recall(app, { key }) {
  const id = recallJob(key)
  if (id === null) return null
  const job = await app.api.retryJob(id).catch((/** @type {unknown} */ error) => {
    if (isTransient(error)) throw error
    return null
  })
  if (job?.state !== 'running') forgetJob(key)
  return job
}

/**
 * @param {Action} action
 * @param {number | null} count
 * @param {Template} prices
 */
function question(action, count, prices) {
  const { about = nothing } = action
  if (count === null)
    return html`${about}
      <p class="faint">Counting …</p>`
  return html`${about}
    <p>${count === 0 ? action.nothingToDo : action.explain(count)}</p>
    ${prices}`
}

/** @param {RetryJob} job */
function progress(job) {
  return html`${renderProgress(job)}
    <p class="hint">
      ${job.state === 'done' ? '' : 'It continues when you close this.'}
      <a href=${placeLink('retries')}>All retry jobs</a> keep their outcome for 30 days.
    </p>`
}
