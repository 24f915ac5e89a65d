import { html, keyed, nothing } from '../lib/html.js'
import { inWords, problemNote } from './problem.js'

/** @import { App, DialogContent, Template } from '../types.d.ts' */

/** How long a message is shown. */
const SHOWN_MS = 6_000

/**
 * The one modal dialog of the page. The browser keeps the focus in it, and gives it back where it was. Work that goes on
 * when it is closed says by a message what went wrong.
 * @param {() => void} update
 * @param {ReturnType<typeof createToast>} toast
 */
export function createDialog(update, toast) {
  /** @type {DialogContent | null} */
  let content = null
  /** @returns {HTMLDialogElement | null} */
  const element = () => document.querySelector('dialog')

  const end = () => {
    const closed = content
    content = null
    if (closed?.task !== undefined) closed.task.onFailed = toast.show
    closed?.onClose?.()
    update()
  }
  const close = () => {
    end()
    element()?.close()
  }
  /** Escape closes it too. The event comes late: by then another content may have been opened. */
  const onClosed = () => {
    if (element()?.open !== true && content !== null) end()
  }
  return {
    /** Returns what closes it, unless it is closed; that returns whether it was open. @param {DialogContent} next */
    open: (next) => {
      if (content !== null) end()
      content = next
      update()
      return () => {
        const isOpen = content === next
        if (isOpen) close()
        return isOpen
      }
    },
    close,
    /**
     * The element stays: one that is taken away while open would take the focus with it. Messages are in it while it is
     * open: what is outside is below its backdrop, and not announced.
     */
    render: () =>
      html`<dialog aria-label=${content?.label ?? 'Dialog'} @close=${onClosed}>
          ${content === null ? nothing : keyed(content, html`<div class="dialog">${content.render()}</div>`)}
          ${toast.render(content !== null)}
        </dialog>
        ${toast.render(content === null)}`,
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
    /** The element stays: only what comes into it is announced. @param {boolean} [isHere] */
    render: (isHere = true) =>
      html`<div class="toast" role="status">${isHere && text !== '' ? html`<p>${text}</p>` : nothing}</div>`,
  }
}

/**
 * What a part of a page does, one piece of work at a time. `problem` says in `words` why the last one failed, or is empty.
 * @param {Pick<App, 'update'>} app
 * @param {(error: unknown) => string} [words]
 * @param {(words: string) => void} [onFailed] called with what went wrong, where nothing shows `problem`
 */
export function createTask(app, words = inWords, onFailed = () => undefined) {
  const task = {
    isBusy: false,
    problem: '',
    onFailed,
    /** @param {() => Promise<unknown>} work */
    async run(work) {
      if (task.isBusy) return
      Object.assign(task, { isBusy: true, problem: '' })
      app.update()
      try {
        await work()
      } catch (error) {
        task.problem = words(error)
        task.onFailed(inWords(error))
      } finally {
        task.isBusy = false
        app.update()
      }
    },
  }
  return task
}

/**
 * The button that closes a dialog. What is under way is not cancelled by it.
 * @param {() => boolean} close
 * @param {{ isBusy: boolean }} task
 */
export function closeButton(close, { isBusy }) {
  return html`<button type="button" @click=${close}>${isBusy ? 'Close' : 'Cancel'}</button>`
}

/**
 * Asks before something is done. `run` closes the dialog; what it throws is shown there.
 * @param {Pick<App, 'update' | 'openDialog'>} app
 * @param {{
 *   title: Template, text: Template, button: string, label?: string, isDanger?: boolean,
 *   run: (close: () => boolean) => Promise<void>,
 * }} options `label`: of the dialog, that of its button where none is given
 */
export function openConfirm(app, { title, text, button, label = button, isDanger = true, run }) {
  const task = createTask(app)
  const close = app.openDialog({
    label,
    task,
    render: () =>
      html`<h2>${title}</h2>
        ${text} ${problemNote(task.problem)}
        <div class="buttons end">
          ${closeButton(close, task)}
          <button
            type="button"
            class=${isDanger ? 'danger' : 'primary'}
            ?disabled=${task.isBusy}
            @click=${() => task.run(() => run(close))}
          >
            ${button}
          </button>
        </div>`,
  })
}
