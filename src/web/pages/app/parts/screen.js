import { ApiProblem, endSession, isTransient } from '../lib/api.js'
import { html, render } from '../lib/html.js'
import { BRAND, chooseTheme, chosenTheme, THEMES } from '../lib/theme.js'
import { createDialog, createToast } from './dialog.js'
import { selectField } from './filter-fields.js'

/** @import { Theme } from '../lib/theme.js' */
/** @import { Template, View } from '../types.d.ts' */

const MIN_RETRY_MS = 1_000
const MAX_RETRY_MS = 15_000

/**
 * A page that shows one view at a time, with its dialog and its messages. `inFrame` renders the view with what is around
 * it while a user is signed in.
 * @param {string} title of the page while it is loading
 * @param {(view: View) => Template} inFrame
 */
export function createScreen(title, inFrame) {
  const root = /** @type {HTMLElement} */ (document.getElementById('app'))
  const toast = createToast(update)
  const dialog = createDialog(update, toast)
  /** @type {View} */
  const loading = { title, render: () => html`<p class="alone">Loading …</p>` }
  let view = loading
  let whileShown = new AbortController()
  let isScheduled = false

  /** Renders once for all changes of the same event-loop iteration. */
  function update() {
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      document.title = `${view.title} · ${BRAND.name}`
      const isAtHeading = document.activeElement?.tagName === 'H1'
      render(html`${inFrame(view)} ${dialog.render()}`, root)
      // That of a page that was loading is replaced by another one.
      if (isAtHeading && document.activeElement === document.body)
        root.querySelector('h1')?.focus({ preventScroll: true })
      dialog.afterRender()
    })
  }
  /** Ends the view that is shown, with what it reads, before the next one begins. @param {() => View} create */
  const show = (create) => {
    dialog.close()
    view.stop?.()
    whileShown.abort()
    whileShown = new AbortController()
    view = create()
    update()
  }
  /**
   * Repeats the work after errors that may pass, and says so meanwhile; what is shown instead ends that for good.
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  const withRetries = async (work) => {
    for (let pauseMs = MIN_RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
      try {
        return await work()
      } catch (error) {
        if (!isTransient(error)) throw error
        const text = `${reasonOf(error)} Trying again …`
        show(() => ({
          title: 'Not available',
          render: () => html`<p class="alone" role="status">${text}</p>`,
        }))
        const { signal } = whileShown
        await new Promise((resolve) => {
          setTimeout(() => signal.aborted || resolve(undefined), pauseMs)
        })
      }
    }
  }
  /**
   * Returns whether the session has ended; says so where it may go on.
   * @param {string} [path]
   */
  const signOut = async (path) => {
    try {
      await endSession(path)
      return true
    } catch (error) {
      toast.show(`You are still signed in. ${reasonOf(error)}`)
      return false
    }
  }
  // Updates countdowns and "5 seconds ago".
  setInterval(() => {
    if (!document.hidden) update()
  }, 1_000)
  update()
  return {
    root,
    show,
    showLoading: () => show(() => loading),
    withRetries,
    signOut,
    /** What views of the page work with. */
    parts: {
      update,
      openDialog: dialog.open,
      showMessage: toast.show,
      /** Aborts once the view that is shown is left. */
      viewSignal: () => whileShown.signal,
    },
  }
}

/** @param {unknown} error */
export function reasonOf(error) {
  return error instanceof ApiProblem ? error.message : `${BRAND.name} cannot be reached.`
}

/**
 * The frame around every view of a signed-in user.
 * @param {{
 *   home: string, places: Template, who: string, of: string, label: string, account?: Template, signOut: () => unknown,
 *   timeZone: string, help?: Template,
 * }} options `label`: the tooltip of `who` and what they are `of`
 * @param {View} view
 * @returns {Template}
 */
export function renderFrame({ home, places, who, of, label, account, signOut, timeZone, help }, view) {
  return html`<a class="skip" href="#main" @click=${toMain}>Skip to content</a>
    <header class="top">
      <div class="inner">
        <a class="brand" href=${home}
          ><img src=${BRAND.logo} alt="" width="24" height="24" /> <span>${BRAND.name}</span></a
        >
        <nav class="places" aria-label="Site">
          ${places}
          <a href="/docs" target="_blank" rel="noopener">API reference</a>
        </nav>
        <div class="account">
          <span class="who" title=${label}><b>${who}</b> <span class="faint">${of}</span></span>
          ${account}
          <button type="button" class="quiet" @click=${signOut}>Sign out</button>
        </div>
      </div>
    </header>
    <main id="main" tabindex="-1">${view.render()}</main>
    <footer class="faint">
      <span>Times are in ${timeZone.replaceAll('_', ' ')}; rest the pointer on one for UTC.</span>
      ${help} ${renderThemeSwitch()}
    </footer>`
}

/**
 * The address of the page names its view: the skip link must not change it.
 * @param {Event} event
 */
function toMain(event) {
  event.preventDefault()
  event.stopPropagation()
  document.getElementById('main')?.focus()
}

/**
 * A page for a user who is not signed in, or no longer.
 * @param {string} title
 * @param {() => Template} content
 * @returns {View}
 */
export function createEntrance(title, content) {
  return {
    title,
    render: () =>
      html`<main class="sign-in">
        <img src=${BRAND.logo} alt="" width="48" height="48" />
        <h1 tabindex="-1">${title}</h1>
        ${content()}
      </main>`,
  }
}

/** The colours of the pages, which this browser remembers. */
export function renderThemeSwitch() {
  const options = THEMES.map((theme) => [theme, WORDS[theme]])
  return selectField(
    'Theme',
    chosenTheme(),
    options,
    (theme) => chooseTheme(/** @type {Theme} */ (theme)),
    'theme',
  )
}

/** @type {Record<Theme, string>} */
const WORDS = { system: 'System', light: 'Light', dark: 'Dark' }
