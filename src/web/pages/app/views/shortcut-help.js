import { html } from '../lib/html.js'
import { areShortcutsOn, SHORTCUTS, switchShortcuts } from '../lib/shortcuts.js'

/** @import { App } from '../types.d.ts' */

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
  app.openDialog({
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
          <button type="button" class="primary" @click=${() => app.closeDialog()}>Close</button>
        </div>`,
  })
}
