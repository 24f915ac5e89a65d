import { element } from './html.js'
import { ifAllowed } from './if-allowed.js'

/** Kept in this browser, where it keeps anything. */
const STORED = 'posthorn.shortcuts'
const OFF = 'off'

const ROWS = 'main :is(.list, .deliveries-table, .events-table) tbody tr'

const SEARCH = 'main input[type=search]'

/** What the keys do, for the help; the keys of one line do the same. */
export const SHORTCUTS = /** @type {const} */ ([
  [['j'], 'Next row'],
  [['k'], 'Previous row'],
  [['Enter', 'o'], 'Open the row; in a wide window beside its list of deliveries'],
  [['/'], 'Search'],
  [['Escape'], 'Close the dialog or the delivery beside the list'],
  [['?'], 'This help'],
])

let isOff = ifAllowed(() => localStorage.getItem(STORED)) === OFF

export const areShortcutsOn = () => !isOff

/**
 * Software for speech input may type letters that were not meant as shortcuts, so shortcuts of one character can be switched off.
 * @param {boolean} isOn
 */
export function switchShortcuts(isOn) {
  isOff = !isOn
  ifAllowed(() => (isOn ? localStorage.removeItem(STORED) : localStorage.setItem(STORED, OFF)))
}

/**
 * Moves through the rows of the list that is shown, and opens what the keys name. Keys do nothing while the user types in
 * a field, with a modifier, or while a dialog is open.
 * @param {() => void} openHelp
 */
export function listenForShortcuts(openHelp) {
  /** @type {Record<string, (event: KeyboardEvent) => void>} */
  const actions = {
    j: ({ repeat }) => move(1, repeat),
    k: ({ repeat }) => move(-1, repeat),
    o: () => current()?.click(),
    '/': focusSearch,
    '?': openHelp,
    Escape: () => element('.beside .close')?.click(),
  }
  document.addEventListener('keydown', (event) => {
    const { key, ctrlKey, metaKey, altKey, isComposing, defaultPrevented, target } = event
    if (ctrlKey || metaKey || altKey || isComposing || defaultPrevented || isField(target)) return
    if (element('dialog[open]') !== null || (isOff && key.length === 1)) return
    const act = Object.hasOwn(actions, key) ? actions[key] : undefined
    if (act === undefined) return
    event.preventDefault()
    act(event)
  })
}

/** @param {EventTarget | null} target */
function isField(target) {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || target.matches('input:not([type=checkbox]), select, textarea')
}

/** The link that opens each row: its first one. */
function links() {
  const rows = [...document.querySelectorAll(ROWS)]
  return rows.flatMap((row) => row.querySelector('a') ?? [])
}

/** The link of the row that has the focus, or of the one that is shown beside the list. */
function current() {
  const all = links()
  return (
    all.find((link) => link.closest('tr')?.contains(document.activeElement) === true) ??
    all.find(isShown) ??
    null
  )
}

/** @param {HTMLAnchorElement} link */
function isShown(link) {
  return link.getAttribute('aria-current') === 'true'
}

/**
 * Focuses the next row; what is shown beside the list follows, unless the key is held down.
 * @param {1 | -1} step
 * @param {boolean} isRepeated
 */
function move(step, isRepeated) {
  const all = links()
  const from = current()
  const index = from === null ? 0 : all.indexOf(from) + step
  const next = all[index]
  next?.focus()
  if (!isRepeated && next !== undefined && !isShown(next) && all.some(isShown)) next.click()
}

function focusSearch() {
  const field = visible(SEARCH)
  if (field === undefined) {
    // In a narrow window the field is behind the button of the filters.
    element('main .filter.closed > button[aria-expanded]')?.click()
    setTimeout(() => (visible(SEARCH) ?? visible('main [role=search] input'))?.focus())
    return
  }
  field.focus()
  field.select()
}

/** @param {string} selector */
function visible(selector) {
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll(selector))
  return [...fields].find((field) => field.checkVisibility())
}
