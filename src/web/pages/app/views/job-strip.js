import { ApiProblem } from '../lib/api.js'
import { html, nothing, repeat } from '../lib/html.js'
import { forgetJob, jobsOf, rememberJob } from '../lib/running-jobs.js'
import { inWords } from '../parts/problem.js'
import { renderProgress } from '../parts/job-progress.js'

/** @import { App, RetryJob } from '../types.d.ts' */

/** @typedef {{ id: string, job: RetryJob | null, readAt: number, problem: string }} Followed */

/**
 * The retry jobs of this tab on a page: their progress, also after a reload, and the result until it is dismissed.
 * @param {App} app
 * @param {string} action prefix of the keys under which they are remembered
 * @param {() => Promise<void>} onEnd
 */
export function createJobStrip(app, action, onEnd) {
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
