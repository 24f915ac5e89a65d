import { html, nothing, repeat } from '../lib/html.js'
import { plural } from '../lib/times.js'
import { openAction } from './actions.js'
import { filterInWords } from './delivery-filter.js'
import { ApiProblem } from '../lib/api.js'
import { forgetJob, jobsOf, rememberJob, renderProgress } from '../parts/job-progress.js'
import { inWords } from '../parts/problem.js'

/** @import { App, Chosen, Delivery, RetryJob, Template } from '../types.d.ts' */
/** @import { Action } from './actions.js' */

/** The API takes so many ids at a time. */
const MAX_SELECTED = 100

/** All that match are counted up to here; the action itself has no such limit. */
const MAX_COUNTED = 1_000
const COUNTED_PER_REQUEST = 100

/** @type {Record<'retry' | 'discard', readonly Delivery['state'][]>} */
const AFFECTED = { retry: ['waiting', 'failed', 'stopped'], discard: ['waiting', 'failed'] }

/**
 * Selected deliveries, and what is done to them: some by their ids, or all that match the filter.
 * @param {App} app
 * @param {string} webhookId
 * @param {{ rows: Delivery[] | null, query: Record<string, string> }} listing
 * @param {() => Promise<void>} refreshRows
 */
export function createBulkActions(app, webhookId, listing, refreshRows) {
  /** @type {Set<string>} */
  const selected = new Set()
  let isAll = false
  const jobs = createJobStrip(app, `selected:${webhookId}`, refreshRows)

  const pageIds = () => (listing.rows ?? []).map(({ id }) => id)
  const clear = () => {
    selected.clear()
    isAll = false
    app.update()
  }
  /** An id is matched by its search alone; there is nothing to choose from. */
  const mayChooseAll = () => Object.keys(listing.query).length > 0 && listing.query['search'] === undefined

  /** @returns {Chosen} */
  const chosen = () => {
    if (!isAll) return { deliveryIds: [...selected] }
    const { statusCode, ...filter } = listing.query
    return { filter: { ...filter, ...(statusCode === undefined ? {} : { statusCode: Number(statusCode) }) } }
  }
  /**
   * @param {'retry' | 'discard'} kind
   * @returns {Action}
   */
  const actionOf = (kind) => {
    // As it is now: a selection may change while the dialog counts.
    const [body, query, count] = [chosen(), listing.query, selected.size]
    let isCapped = false
    const words = (/** @type {number} */ many) => `${isCapped ? 'at least ' : ''}${plural(many, 'delivery')}`
    return {
      key: `selected:${webhookId}:${kind}`,
      title: `${kind === 'retry' ? 'Retry' : 'Discard'} ${isAll ? 'all deliveries that match' : 'selected deliveries'}`,
      button: kind === 'retry' ? 'Retry' : 'Discard',
      danger: kind === 'discard',
      about: 'filter' in body ? filterInWords(app, query) : nothing,
      explain: (many) =>
        kind === 'retry'
          ? `Of ${words(many)}, those that wait for a retry, are permanently failed or stopped get one attempt at once, which counts as the next of their ${app.session.retryWaitsMs.length + 1}: what has no further attempt is permanently failed if it fails. Completed ones and test events are left alone.`
          : `Of ${words(many)}, those that wait for a retry or are permanently failed are stopped, and not attempted again unless they are retried.`,
      nothingToDo: 'None of them is in a state that this changes.',
      amount: (many) => `${many.toLocaleString()}${isCapped ? '+' : ''}`,
      count: async () => {
        if (!('filter' in body)) return count
        const found = await countMatching(app, webhookId, query, AFFECTED[kind])
        isCapped = found.isCapped
        return found.count
      },
      run: async (requestId) => {
        if (kind === 'retry')
          return app.api.retryDeliveries({ mode: 'undelivered', id: webhookId, ...body }, requestId)
        const { discarded } = await app.api.discardDeliveries(webhookId, body)
        return `Discarded ${plural(discarded, 'delivery')}.`
      },
      onDone: (job) => {
        if (job !== null) jobs.add(job)
        clear()
      },
    }
  }
  const open = (/** @type {'retry' | 'discard'} */ kind) => () => openAction(app, actionOf(kind), refreshRows)

  return {
    clear,
    refresh: () => jobs.refresh(),
    renderJobs: () => jobs.render(),
    get isAll() {
      return isAll
    },
    get isWhole() {
      return isAll || pageIds().every((id) => selected.has(id))
    },
    get isMixed() {
      return !isAll && pageIds().some((id) => selected.has(id)) && !pageIds().every((id) => selected.has(id))
    },
    /** @param {string} id */
    has: (id) => isAll || selected.has(id),
    /** @param {string} id */
    toggle(id) {
      if (!selected.delete(id)) selected.add(id)
      app.update()
    },
    togglePage() {
      const ids = pageIds()
      const wasWhole = isAll || ids.every((id) => selected.has(id))
      isAll = false
      for (const id of ids)
        if (wasWhole) selected.delete(id)
        else selected.add(id)
      app.update()
    },
    /** @returns {Template} */
    render() {
      if (!isAll && selected.size === 0) return nothing
      const isTooMany = !isAll && selected.size > MAX_SELECTED
      const many = isAll ? 'all' : selected.size.toLocaleString()
      const chooseAll = () => {
        isAll = true
        app.update()
      }
      return html`<div class="bulk" role="region" aria-label="Selected deliveries">
        <span role="status">${isAll ? 'All that match are selected' : `${many} selected`}</span>
        ${
          !isAll && mayChooseAll() && pageIds().every((id) => selected.has(id))
            ? html`<button type="button" class="quiet" @click=${chooseAll}>Select all that match</button>`
            : nothing
        }
        <div class="buttons">
          <button type="button" ?disabled=${isTooMany} @click=${open('retry')}>Retry ${many}</button>
          <button type="button" class="danger" ?disabled=${isTooMany} @click=${open('discard')}>
            Discard ${many}
          </button>
          <button type="button" class="quiet" @click=${clear}>Clear selection</button>
        </div>
        ${isTooMany ? html`<p class="hint">At most ${MAX_SELECTED} can be chosen one by one. Set a filter to select all that match.</p>` : nothing}
      </div>`
    },
  }
}

/**
 * Counts those among the matching deliveries that are in one of the states: of each up to `MAX_COUNTED`, in as many
 * requests as those take. Where one did not reach the end there is at least one more.
 * @param {App} app
 * @param {string} webhookId
 * @param {Record<string, string>} query
 * @param {readonly Delivery['state'][]} states
 */
async function countMatching(app, webhookId, query, states) {
  let [count, isCapped] = [0, false]
  for (const state of states) {
    if ((query['state'] ?? state) !== state) continue
    /** @type {string | null} */
    let cursor = null
    let seen = 0
    do {
      /** @type {{ data: Delivery[], nextCursor: string | null }} */
      const page = await app.api.deliveries(webhookId, {
        ...query,
        state,
        limit: String(COUNTED_PER_REQUEST),
        ...(cursor === null ? {} : { cursor }),
      })
      count += page.data.length
      seen += COUNTED_PER_REQUEST
      cursor = page.nextCursor
    } while (cursor !== null && seen < MAX_COUNTED)
    isCapped ||= cursor !== null
  }
  return { count: isCapped ? Math.max(1, count) : count, isCapped }
}

/** @typedef {{ id: string, job: RetryJob | null, readAt: number, problem: string }} Followed */

/**
 * The retry jobs of this tab on a page: their progress, also after a reload, and the result until it is dismissed.
 * @param {App} app
 * @param {string} action prefix of the keys under which they are remembered
 * @param {() => Promise<void>} onEnd
 */
function createJobStrip(app, action, onEnd) {
  const keyOf = (/** @type {string} */ id) => `${action}:${id}`
  /** @type {Followed[]} */
  let followed = jobsOf(action).map((id) => ({ id, job: null, readAt: 0, problem: '' }))

  /** @param {string} id */
  const dismiss = (id) => {
    forgetJob(keyOf(id))
    followed = followed.filter((one) => one.id !== id)
    app.update()
  }
  /** @param {Followed} one */
  const read = async (one) => {
    if (one.job?.state === 'done') return
    try {
      one.job = await app.api.retryJob(one.id)
      ;[one.readAt, one.problem] = [Date.now(), '']
      if (one.job.state === 'done') void onEnd()
    } catch (error) {
      if (error instanceof ApiProblem && error.problem.status === 404) dismiss(one.id)
      one.problem = inWords(error)
    }
    app.update()
  }

  return {
    /** @param {RetryJob} job */
    add(job) {
      rememberJob(keyOf(job.id), job.id)
      followed = [...followed, { id: job.id, job, readAt: Date.now(), problem: '' }]
    },
    async refresh() {
      await Promise.all(followed.map(read))
    },
    render: () =>
      repeat(
        followed,
        ({ id }) => id,
        ({ id, job, readAt, problem }) =>
          html`<section class="job" aria-label="Retry of selected deliveries">
            ${job === null ? html`<p class="faint">Reading the progress of a retry …</p>` : renderProgress(job)}
            ${
              problem === ''
                ? nothing
                : html`<p class="hint">
                    ${problem} ${readAt === 0 ? '' : `This is how it stood at ${app.times.clock(readAt)}.`} It
                    is read again in a moment.
                  </p>`
            }
            ${
              job?.state === 'done'
                ? html`<button type="button" class="quiet" @click=${() => dismiss(id)}>Dismiss</button>`
                : nothing
            }
          </section>`,
      ),
  }
}
