import { html } from '../app/lib/html.js'
import { nameOf } from '../app/parts/address.js'
import { closeButton, createTask, openConfirm } from '../app/parts/dialog.js'
import { problemNote } from '../app/parts/problem.js'

/** @import { OperatorWebhook } from '../app/types.d.ts' */
/** @import { OperatorApp } from './view.js' */

/**
 * @param {OperatorWebhook} webhook
 * @param {'disable' | 'enable'} action
 */
function pathOf({ id, organisation }, action) {
  return `/api/operator/organisations/${encodeURIComponent(organisation.id)}/webhooks/${id}/${action}`
}

/**
 * Asks why, and says what a hold does.
 * @param {OperatorApp} app
 * @param {OperatorWebhook} webhook
 * @param {() => Promise<void>} refresh
 */
export function openHold(app, webhook, refresh) {
  const task = createTask(app)
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault()
    const { elements } = /** @type {HTMLFormElement} */ (event.currentTarget)
    const reason = /** @type {HTMLInputElement} */ (elements.namedItem('reason')).value.trim()
    return task.run(async () => {
      await app.ask('POST', pathOf(webhook, 'disable'), { reason })
      close()
      app.showMessage('The webhook is held.')
      await refresh()
    })
  }
  const close = app.openDialog({
    label: 'Hold webhook',
    task,
    render: () =>
      html`<h2>Hold ${nameOf(webhook)}?</h2>
        <p>
          Nothing more is sent to it; an attempt under way finishes. ${webhook.organisation.name} sees since
          when and why, and cannot switch it on until you end the hold. Events that happen meanwhile are not
          kept for it.
        </p>
        <form class="fields" @submit=${submit}>
          <label class="field"
            >Reason
            <input
              name="reason"
              required
              maxlength="500"
              autocomplete="off"
              placeholder="what the organisation is to know, and whom it asks"
            />
          </label>
          ${problemNote(task.problem)}
          <div class="buttons end">
            ${closeButton(close, task)}
            <button class="danger" ?disabled=${task.isBusy}>Hold webhook</button>
          </div>
        </form>`,
  })
}

/**
 * @param {OperatorApp} app
 * @param {OperatorWebhook} webhook
 * @param {() => Promise<void>} refresh
 */
export function openRelease(app, webhook, refresh) {
  openConfirm(app, {
    title: `End the hold on ${nameOf(webhook)}?`,
    text: html`<p>The reason was: ${webhook.operatorHold?.reason}</p>
      <p>
        It is on again if it was before the hold. Deliveries that were never attempted go on by themselves;
        ${webhook.organisation.name} can resume the others.
      </p>`,
    button: 'End hold',
    isDanger: false,
    run: async (close) => {
      await app.ask('POST', pathOf(webhook, 'enable'))
      close()
      app.showMessage('The hold has ended.')
      await refresh()
    },
  })
}
