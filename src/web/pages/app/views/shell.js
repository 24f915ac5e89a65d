import { html } from '../lib/html.js'
import { addressed, placeLink } from '../lib/links.js'
import { areShortcutsOn, SHORTCUTS, switchShortcuts } from '../lib/shortcuts.js'
import { renderFrame } from '../parts/screen.js'

/** @import { Place } from '../lib/links.js' */
/** @import { App, Template, View } from '../types.d.ts' */

/**
 * The frame around every view of a signed-in member.
 * @param {App} app
 * @param {View} view
 * @returns {Template}
 */
export function renderShell(app, view) {
  const { organisation, member } = app.session
  const current = addressed('view')
  /**
   * @param {Place} name
   * @param {string} words
   */
  const place = (name, words) =>
    html`<a href=${placeLink(name)} aria-current=${name === current ? 'page' : 'false'}>${words}</a>`
  return renderFrame(
    {
      home: '/developer',
      places: html`${place('', 'Webhooks')} ${place('events', 'Events')} ${place('catalogue', 'Catalogue')}
      ${member.fullAccess ? place('audit', 'Audit') : ''}`,
      who: organisation.name,
      of: member.name,
      label: `${organisation.name}, ${member.name}`,
      account: html`${place('api-keys', 'API keys')} ${place('notifications', 'Notifications')}`,
      signOut: () => app.signOut(),
      timeZone: app.times.timeZone,
      help: html`<button type="button" class="quiet" @click=${() => openShortcutHelp(app)}>
        Keyboard shortcuts
      </button>`,
    },
    view,
  )
}

/**
 * Lists the keys of the developer area, and switches them off and on.
 * @param {App} app
 */
export function openShortcutHelp(app) {
  /** @param {Event} event */
  const choose = (event) => {
    switchShortcuts(/** @type {HTMLInputElement} */ (event.currentTarget).checked)
    app.update()
  }
  const close = app.openDialog({
    label: 'Keyboard shortcuts',
    render: () =>
      html`<h2>Keyboard shortcuts</h2>
        <table class="shortcuts">
          ${SHORTCUTS.map(
            ([keys, meaning]) =>
              html`<tr>
                <th scope="row">${keys.map((key) => html`<kbd>${key}</kbd> `)}</th>
                <td>${meaning}</td>
              </tr>`,
          )}
        </table>
        <p class="hint">They do nothing while you type in a field.</p>
        <p>
          <label class="check"
            ><input type="checkbox" .checked=${areShortcutsOn()} @change=${choose} /> Use letters and
            characters as shortcuts</label
          >
        </p>
        <div class="buttons end">
          <button type="button" class="primary" @click=${close}>Close</button>
        </div>`,
  })
}
