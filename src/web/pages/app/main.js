import { ApiProblem, createApi, currentSession } from './lib/api.js'
import { html, render } from './lib/html.js'
import { createTimes } from './lib/times.js'
import { createDialog } from './parts/dialog.js'
import { createSayings } from './parts/sayings.js'
import { renderShell } from './views/shell.js'
import { createSignIn } from './views/sign-in.js'
import { createView } from './views/view-of.js'

/** @import { App, Session, View } from './types.d.ts' */

const root = /** @type {HTMLElement} */ (document.getElementById('app'))
const dialog = createDialog(update)
const sayings = createSayings(update)

/** @type {{ app: App | null, view: View }} */
const state = {
  app: null,
  view: { title: 'Developer area', render: () => html`<p class="alone">Loading …</p>` },
}

let isScheduled = false

/** Renders once for all that changed within this turn. */
function update() {
  if (isScheduled) return
  isScheduled = true
  queueMicrotask(() => {
    isScheduled = false
    document.title = `${state.view.title} · Posthorn`
    render(
      html`${state.app === null ? state.view.render() : renderShell(state.app, state.view)} ${dialog.render()}
      ${sayings.render()}`,
      root,
    )
    dialog.afterRender()
  })
}

/** @param {View} view */
function show(view) {
  state.view.stop?.()
  state.view = view
  update()
}

/** @param {string} [reason] */
function showSignIn(reason) {
  dialog.close()
  state.app = null
  show(createSignIn({ update, reason: reason ?? '', onSignedIn: start }))
}

/** @param {Session} session */
function start(session) {
  const onSignedOut = () => {
    if (state.app !== null) showSignIn('Your session has ended. Sign in again.')
  }
  /** @type {App} */
  const app = {
    session,
    api: createApi(session.organisation.id, onSignedOut),
    times: createTimes(session.organisation.timeZone),
    update,
    go(search) {
      history.pushState(null, '', `${location.pathname}${search}`)
      showAddressed(app)
    },
    openDialog: dialog.open,
    closeDialog: dialog.close,
    say: sayings.say,
    async signOut() {
      await app.api.signOut().catch(() => undefined)
      showSignIn('You are signed out.')
    },
  }
  state.app = app
  showAddressed(app)
}

/**
 * What the address names; where it changed, whoever reads with the ear or the keyboard begins at its heading.
 * @param {App} app
 */
function showAddressed(app) {
  dialog.close()
  show(createView(app, new URLSearchParams(location.search)))
  queueMicrotask(() => {
    scrollTo(0, 0)
    root.querySelector('h1')?.focus()
  })
}

/** Links to other views of this page are followed without loading it again; those to be opened elsewhere are not ours. */
root.addEventListener('click', (event) => {
  const link = /** @type {Element} */ (event.target).closest('a')
  if (link === null || state.app === null || link.target !== '' || link.pathname !== location.pathname) return
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return
  event.preventDefault()
  state.app.go(link.search)
})
addEventListener('popstate', () => {
  if (state.app !== null) showAddressed(state.app)
})
// Countdowns and "5 seconds ago" go on by themselves.
setInterval(() => {
  if (!document.hidden) update()
}, 1_000)

update()
currentSession().then(
  (session) => (session === null ? showSignIn() : start(session)),
  /** @param {unknown} error */
  (error) => showSignIn(error instanceof ApiProblem ? error.message : 'Posthorn cannot be reached.'),
)
