import { html, keyed, nothing } from '../lib/html.js'
import { inWords, problemNote } from './problem.js'

/** @import { App, DialogContent, Template } from '../types.d.ts' */

/** How long a message is shown. */
const SHOWN_MS = 6_000

/**
 * The one modal dialog of the page. The browser keeps the focus in it, and gives it back where it was.
 * @param {() => void} update
 */
export function createDialog(update) {
  /** @type {DialogContent | null} */
  let content = null
  /** @returns {HTMLDialogElement | null} */
  const element = () => document.querySelector('dialog')

  const end = () => {
    const closed = content
    content = null
    closed?.onClose?.()
    update()
  }
  /** Escape closes it too. The event comes late: by then another content may have been opened. */
  const onClosed = () => {
    if (element()?.open !== true && content !== null) end()
  }
  return {
    /** @param {DialogContent} next */
    open: (next) => {
      content = next
      update()
    },
    close: () => {
      end()
      element()?.close()
    },
    /** The element stays: one that is taken away while open would take the focus with it. */
    render: () =>
      html`<dialog aria-label=${content?.label ?? 'Dialog'} @close=${onClosed}>
        ${content === null ? nothing : keyed(content, html`<div class="dialog">${content.render()}</div>`)}
      </dialog>`,
    afterRender() {
      const shown = element()
      if (content !== null && shown?.open === false) shown.showModal()
    },
  }
}

/**
 * Shows short messages about what was done, also to screen readers.
 * @param {() => void} update
 */
export function createToast(update) {
  let text = ''
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  return {
    /** @param {string} message */
    show: (message) => {
      clearTimeout(timer)
      text = message
      timer = setTimeout(() => {
        text = ''
        update()
      }, SHOWN_MS)
      update()
    },
    render: () =>
      html`<div class="toast" role="status">${text === '' ? nothing : html`<p>${text}</p>`}</div>`,
  }
}

/**
 * What a part of a page does, one piece of work at a time. `problem` says in `words` why the last one failed, or is empty.
 * @param {Pick<App, 'update'>} app
 * @param {(error: unknown) => string} [words]
 */
export function createTask(app, words = inWords) {
  const task = {
    isBusy: false,
    problem: '',
    /** @param {() => Promise<unknown>} work */
    async run(work) {
      if (task.isBusy) return
      Object.assign(task, { isBusy: true, problem: '' })
      app.update()
      try {
        await work()
      } catch (error) {
        task.problem = words(error)
      } finally {
        task.isBusy = false
        app.update()
      }
    },
  }
  return task
}

/**
 * Asks before something is done. `run` closes the dialog; what it throws is shown there.
 * @param {Pick<App, 'update' | 'openDialog' | 'closeDialog'>} app
 * @param {{
 *   title: Template, text: Template, button: string, label?: string, isDanger?: boolean, run: () => Promise<void>,
 * }} options `label`: of the dialog, that of its button where none is given
 */
export function openConfirm(app, { title, text, button, label = button, isDanger = true, run }) {
  const task = createTask(app)
  app.openDialog({
    label,
    render: () =>
      html`<h2>${title}</h2>
        ${text} ${problemNote(task.problem)}
        <div class="buttons end">
          <button type="button" @click=${() => app.closeDialog()}>Cancel</button>
          <button
            type="button"
            class=${isDanger ? 'danger' : 'primary'}
            ?disabled=${task.isBusy}
            @click=${() => task.run(run)}
          >
            ${button}
          </button>
        </div>`,
  })
}
