import { ifAllowed } from './if-allowed.js'

/** The name and the logo of the service, as the operator chose them: the document has both. */
export const BRAND = {
  name: document.querySelector('meta[name="application-name"]')?.getAttribute('content') ?? '',
  logo: document.querySelector('link[rel="icon"]')?.getAttribute('href') ?? '',
}

/** @typedef {'system' | 'light' | 'dark'} Theme */

const KEY = 'posthorn-theme'

/** @type {readonly Theme[]} */
export const THEMES = ['system', 'light', 'dark']

/** @returns {Theme} what this browser remembers; the system's where it remembers nothing, or may not */
export function chosenTheme() {
  const stored = ifAllowed(() => localStorage.getItem(KEY))
  return THEMES.find((theme) => theme === stored) ?? 'system'
}

/**
 * Colours this page, and the other open ones of this browser.
 * @param {Theme} theme
 */
export function chooseTheme(theme) {
  ifAllowed(() => localStorage.setItem(KEY, theme))
  colour(theme)
}

/** Colours the page as chosen, and again when the choice or the system changes. */
export function followTheme() {
  const apply = () => colour(chosenTheme())
  apply()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply)
  addEventListener('storage', ({ key }) => {
    if (key === KEY) apply()
  })
}

/** @param {Theme} theme */
function colour(theme) {
  const isDark = theme === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark'
  document.documentElement.dataset['theme'] = isDark ? 'dark' : 'light'
}
