import { html, keyed, nothing } from '../lib/html.js'

/** @import { DialogContent } from '../types.d.ts' */

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
