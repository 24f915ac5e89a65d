import { html } from '../lib/html.js'
import { chooseTheme, chosenTheme, THEMES } from '../lib/theme.js'

/** @import { Theme } from '../lib/theme.js' */

/** The colours of the pages, which this browser remembers. */
export function renderThemeSwitch() {
  const chosen = chosenTheme()
  return html`<label class="theme"
    >Theme
    <select @change=${choose}>
      ${THEMES.map(
        (theme) => html`<option value=${theme} ?selected=${theme === chosen}>${WORDS[theme]}</option>`,
      )}
    </select></label
  >`
}

/** @type {Record<Theme, string>} */
const WORDS = { system: 'System', light: 'Light', dark: 'Dark' }

/** @param {Event} event */
function choose(event) {
  chooseTheme(/** @type {Theme} */ (/** @type {HTMLSelectElement} */ (event.currentTarget).value))
}
