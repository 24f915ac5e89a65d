import { element, html, nothing } from '../lib/html.js'
import { addressed, addressWith, deliveryLink } from '../lib/links.js'
import { createDeliveryView } from './delivery.js'

/** @import { App, Template, View } from '../types.d.ts' */

/** From here on there is room for a list and, beside it, the detail of one of its rows. */
const WIDE = matchMedia('(width >= 80rem)')

/** Whether the delivery that the address names is opened beside the list of a tab. */
export function isBesideList() {
  return WIDE.matches && addressed('tab') !== ''
}

/**
 * A list of deliveries and, in a wide window, the one that is opened beside it; both are in the address. In a narrow
 * window a delivery that is opened has the page for itself.
 * @param {App} app
 */
export function createSidePanel(app) {
  /** @type {{ webhookId: string, id: string, detail: View } | null} */
  let shown = null

  /** @param {{ webhookId: string, id: string } | null} next */
  const show = (next) => {
    shown?.detail.stop?.()
    shown = next === null ? null : { ...next, detail: createDeliveryView(app, next.webhookId, next.id, true) }
    app.update()
  }
  const [webhookId, id] = [addressed('webhook'), addressed('delivery')]
  if (webhookId !== '' && id !== '') show({ webhookId, id })

  /**
   * Opening one adds an entry to the history, going to the next one does not: back leads to the list.
   * @param {{ webhookId: string, id: string }} wanted
   * @param {Event} event of its link; a new tab or a narrow window shows it on its own
   */
  const open = ({ webhookId, id }, event) => {
    const { ctrlKey, metaKey, shiftKey } = /** @type {MouseEvent} */ (event)
    if (!WIDE.matches || ctrlKey || metaKey || shiftKey) return
    event.preventDefault()
    event.stopPropagation()
    const url = addressWith({ webhook: webhookId, delivery: id })
    if (shown === null) history.pushState(history.state, '', url)
    else history.replaceState(history.state, '', url)
    show({ webhookId, id })
    // A click moves the focus to the delivery; keys that go from row to row leave it in the list.
    if (event.isTrusted) setTimeout(() => element('.beside')?.focus())
  }
  const close = () => {
    const isPlace = addressed('view') !== ''
    history.pushState(history.state, '', addressWith({ delivery: '', ...(isPlace && { webhook: '' }) }))
    element('.beside-list [aria-current="true"]')?.focus()
    show(null)
  }

  return {
    open,
    get shownId() {
      return shown?.id ?? null
    },
    stop: () => shown?.detail.stop?.(),
    /** @param {Template} list */
    render: (list) =>
      html`<div class=${shown === null ? '' : 'with-panel'}>
        <div class="beside-list">${list}</div>
        ${
          shown === null
            ? nothing
            : html`<section class="beside" aria-label="Delivery" tabindex="-1">
                <p class="bar">
                  <a href=${deliveryLink(shown.webhookId, shown.id)}>Open as a page</a>
                  <button type="button" class="quiet close" @click=${close}>Close</button>
                </p>
                ${shown.detail.render()}
              </section>`
        }
      </div>`,
  }
}
