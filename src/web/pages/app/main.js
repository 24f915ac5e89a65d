import { ApiProblem, createApi, currentSession, isTransient, openPortalLink } from './lib/api.js'
import { BRAND } from './lib/brand.js'
import { html, render } from './lib/html.js'
import { takePortalToken } from './lib/portal-link.js'
import { adoptSubscription } from './lib/push.js'
import { listenForShortcuts } from './lib/shortcuts.js'
import { createTimes } from './lib/times.js'
import { createDialog } from './parts/dialog.js'
import { createToast } from './parts/toast.js'
import { createClosedLink } from './views/closed-link.js'
import { createAccountQuestion, createLeftAccount } from './views/other-account.js'
import { renderShell } from './views/shell.js'
import { openShortcutHelp } from './views/shortcut-help.js'
import { createSignIn, WITH_API_KEY } from './views/sign-in.js'
import { createView } from './views/view-of.js'

/** @import { App, Session, View } from './types.d.ts' */

const root = /** @type {HTMLElement} */ (document.getElementById('app'))
const MIN_RETRY_MS = 1_000
const MAX_RETRY_MS = 15_000

const dialog = createDialog(update)
const toast = createToast(update)

/** @type {View} */
const LOADING = { title: 'Developer area', render: () => html`<p class="alone">Loading …</p>` }

/** @type {{ app: App | null, view: View }} */
const state = { app: null, view: LOADING }

let isScheduled = false

/** Renders once for all changes of the same event-loop iteration. */
function update() {
  if (isScheduled) return
  isScheduled = true
  queueMicrotask(() => {
    isScheduled = false
    document.title = `${state.view.title} · ${BRAND.name}`
    render(
      html`${state.app === null ? state.view.render() : renderShell(state.app, state.view)} ${dialog.render()}
      ${toast.render()}`,
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

/**
 * Shows a view without a signed-in member.
 * @param {View} view
 */
function showSignedOut(view) {
  dialog.close()
  state.app = null
  show(view)
}

/** @param {string} [reason] */
function showSignIn(reason) {
  showSignedOut(createSignIn(WITH_API_KEY, { update, reason: reason ?? '', onSignedIn: startSignedIn }))
}

/**
 * Tabs tell each other whose area they show, so that none goes on showing another member than the one whose cookie their
 * requests have.
 */
const tabs = new BroadcastChannel('posthorn-session')
const SIGNED_OUT = ''

/** @param {Session} session */
function identityOf({ organisation, member }) {
  return `${organisation.id}/${member.id}`
}

tabs.addEventListener('message', ({ data }) => {
  if (state.app === null || data === identityOf(state.app.session)) return
  if (data === SIGNED_OUT) showSignIn('You signed out in another tab.')
  else showSignedOut(createLeftAccount(state.app.session))
})

/**
 * The same after a sign-in, which push messages of this browser follow.
 * @param {Session} session
 */
async function startSignedIn(session) {
  await start(session)
  // Without it they stay as they are; the view of notifications shows that.
  if (state.app !== null) await adoptSubscription(state.app.api).catch(() => undefined)
}

/** @param {Session} session */
async function start(session) {
  tabs.postMessage(identityOf(session))
  const onSignedOut = () => {
    if (state.app !== null) showSignIn('Your session has ended. Sign in again.')
  }
  const api = createApi(session.organisation.id, onSignedOut)
  const { data: eventKeys } = await api.eventKeys()
  /** @type {App} */
  const app = {
    session,
    eventKeys,
    webhooks: null,
    api,
    times: createTimes(session.organisation.timeZone),
    update,
    go(search) {
      history.pushState(null, '', `${location.pathname}${search}`)
      showAddressed(app)
    },
    openDialog: dialog.open,
    closeDialog: dialog.close,
    showMessage: toast.show,
    async signOut() {
      await app.api.signOut().catch(() => undefined)
      tabs.postMessage(SIGNED_OUT)
      showSignIn('You are signed out.')
    },
  }
  state.app = app
  showAddressed(app)
}

/**
 * Shows the view of the address, and focuses its heading for screen readers and keyboards.
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
listenForShortcuts(() => {
  if (state.app !== null) openShortcutHelp(state.app)
})
// Countdowns and "5 seconds ago" go on by themselves.
setInterval(() => {
  if (!document.hidden) update()
}, 1_000)

/**
 * Shows the address's view, or `signedOut` where there is no session. An error that may pass says nothing of the session:
 * it is asked for again.
 */
async function openArea(signedOut = () => showSignIn(), startArea = start) {
  try {
    const session = await patiently(() => currentSession())
    if (session === null) signedOut()
    else await patiently(() => startArea(session))
  } catch (error) {
    showSignIn(reasonOf(error))
  }
}

/**
 * Exchanges the token of a portal link for a session, and goes where the link leads. A link whose request got no answer
 * that counts is not used up, nor is one that asks whether the member who is signed in is to be replaced.
 * @param {string} token
 * @param {boolean} [isConfirmed]
 */
async function openLink(token, isConfirmed = false) {
  showSignedOut(LOADING)
  /**
   * @param {string} title
   * @param {string} reason
   */
  const refuse = (title, reason) => showSignedOut(createClosedLink({ title, reason }))
  try {
    const { address } = await patiently(() => openPortalLink(token, isConfirmed))
    history.replaceState(null, '', address)
  } catch (error) {
    const { signedIn, requested } = error instanceof ApiProblem ? error.problem : {}
    if (signedIn !== undefined && requested !== undefined) {
      const onStay = () => void openArea()
      const onSwitch = () => void openLink(token, true)
      showSignedOut(createAccountQuestion({ signedIn, requested, onStay, onSwitch }))
      return
    }
    const isOver = error instanceof ApiProblem && error.problem.code === 'invalid_portal_link'
    refuse(isOver ? 'This link is no longer valid' : 'The link did not open', reasonOf(error))
    return
  }
  await openArea(
    () => refuse('Not signed in', 'This browser keeps no cookie for this page, so the link cannot open it.'),
    startSignedIn,
  )
}

/**
 * Repeats the work after errors that may pass, and says so meanwhile.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function patiently(work) {
  for (let pauseMs = MIN_RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
    try {
      return await work()
    } catch (error) {
      if (!isTransient(error)) throw error
      const reason = reasonOf(error)
      showSignedOut({
        title: 'Not available',
        render: () => html`<p class="alone" role="status">${reason} Trying again …</p>`,
      })
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
}

/** @param {unknown} error */
function reasonOf(error) {
  return error instanceof ApiProblem ? error.message : `${BRAND.name} cannot be reached.`
}

// Where the page is open already, another link changes no more than the fragment.
addEventListener('hashchange', () => {
  const token = takePortalToken()
  if (token !== null) void openLink(token)
})
update()
const portalToken = takePortalToken()
void (portalToken === null ? openArea() : openLink(portalToken))
