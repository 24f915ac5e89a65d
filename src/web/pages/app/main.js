import { ApiProblem, createApi, currentSession, openPortalLink } from './lib/api.js'
import { adoptSubscription } from './lib/push.js'
import { listenForShortcuts } from './lib/shortcuts.js'
import { createTimes } from './lib/times.js'
import { createScreen, reasonOf } from './parts/screen.js'
import { openShortcutHelp, renderShell } from './views/shell.js'
import {
  createAccountQuestion,
  createClosedLink,
  createLeftAccount,
  createSignIn,
  WITH_API_KEY,
} from './views/sign-in.js'
import { html } from './lib/html.js'
import { ifAllowed } from './lib/if-allowed.js'
import { addressed } from './lib/links.js'
import { createApiKeysView } from './views/api-keys.js'
import { createAuditView } from './views/audit.js'
import { createCatalogueView } from './views/catalogue.js'
import { createDeliveryView } from './views/delivery.js'
import { createEventView } from './views/event.js'
import { createEventsView } from './views/events.js'
import { createRetryJobsView } from './views/retry-jobs.js'
import { createLiveView } from './views/live.js'
import { createNotificationsView } from './views/settings.js'
import { isBesideList } from './views/side-panel.js'
import { createWebhookList } from './views/webhook-list.js'
import { createWebhookView } from './views/webhook.js'

/** @import { App, Session, View } from './types.d.ts' */

/** @type {App | null} */
let app = null

/** Of the area that is shown or about to be. @type {Session | null} */
let current = null

const screen = createScreen('Developer area', (view) =>
  app === null ? view.render() : renderShell(app, view),
)

/**
 * Shows a view without a signed-in member.
 * @param {View} view
 */
function showSignedOut(view) {
  ;[app, current] = [null, null]
  screen.show(() => view)
}

function showSignIn(reason = '') {
  showSignedOut(
    createSignIn(WITH_API_KEY, { update: screen.parts.update, reason, onSignedIn: startSignedIn }),
  )
}

/**
 * Tabs tell each other whose area they show, so that none goes on showing another member than the one whose cookie their
 * requests have.
 */
const tabs = ifAllowed(() => new BroadcastChannel('posthorn-session'))
const SIGNED_OUT = ''

/** @param {Session} session */
function identityOf({ organisation, member }) {
  return `${organisation.id}/${member.id}`
}

tabs?.addEventListener('message', ({ data }) => {
  if (current === null || data === identityOf(current)) return
  if (data === SIGNED_OUT) showSignIn('You signed out in another tab.')
  else showSignedOut(createLeftAccount(current))
})

/**
 * The same after a sign-in, which push messages of this browser follow.
 * @param {Session} session
 */
async function startSignedIn(session) {
  await start(session)
  // Without it they stay as they are; the view of notifications shows that.
  if (app !== null) await adoptSubscription(app.api).catch(() => undefined)
}

/** @param {Session} session */
async function start(session) {
  current = session
  tabs?.postMessage(identityOf(session))
  const onSignedOut = () => {
    if (app?.session === session) showSignIn('Your session has ended. Sign in again.')
  }
  const api = createApi(session.organisation.id, onSignedOut, screen.parts.viewSignal)
  const { data: eventKeys } = await api.eventKeys()
  /** @type {App} */
  const started = {
    session,
    eventKeys,
    webhooks: null,
    api,
    times: createTimes(session.organisation.timeZone),
    ...screen.parts,
    go(link) {
      history.pushState(null, '', link)
      showAddressed(started)
    },
    async signOut() {
      if (!(await screen.signOut())) return
      tabs?.postMessage(SIGNED_OUT)
      showSignIn('You are signed out.')
    },
  }
  app = started
  showAddressed(started)
}

/**
 * Shows the view of the address, and focuses its heading for screen readers and keyboards.
 * @param {App} shown
 */
function showAddressed(shown) {
  screen.show(() => createView(shown))
  queueMicrotask(() => {
    scrollTo(0, 0)
    screen.root.querySelector('h1')?.focus()
  })
}

/**
 * The view that an address names: `?webhook=…`, which mails link to, `?webhook=…&delivery=…`, `?view=…`, or the list.
 * @param {App} app
 * @returns {View}
 */
function createView(app) {
  const [webhookId, deliveryId] = [addressed('webhook'), addressed('delivery')]
  const eventId = addressed('event')
  switch (addressed('view')) {
    case '':
      if (webhookId === '') return createWebhookList(app)
      return deliveryId === '' || isBesideList()
        ? createWebhookView(app, webhookId)
        : createDeliveryView(app, webhookId, deliveryId)
    case 'events':
      return eventId === '' ? createEventsView(app) : createEventView(app, eventId)
    case 'catalogue':
      return createCatalogueView(app)
    case 'audit':
      return createAuditView(app)
    case 'retries':
      return createRetryJobsView(app)
    case 'api-keys':
      return createApiKeysView(app)
    case 'live':
      return createLiveView(app)
    case 'notifications':
      return createNotificationsView(app)
    default:
      return UNKNOWN
  }
}

/** Says that the address names no view. @type {View} */
const UNKNOWN = {
  title: 'No such page',
  render: () =>
    html`<section class="empty">
      <h1 tabindex="-1">No such page</h1>
      <p>The address of this page is not one of the developer area.</p>
      <p><a href="/developer">All webhooks</a></p>
    </section>`,
}

/** Links to other views of this page are followed without loading it again; those to be opened elsewhere are not ours. */
screen.root.addEventListener('click', (event) => {
  const link = /** @type {Element} */ (event.target).closest('a')
  if (link === null || app === null || link.getAttribute('target') !== null) return
  // A link in a drawing has no `pathname`.
  const { pathname, search } = new URL(link.getAttribute('href') ?? '', location.href)
  if (pathname !== location.pathname) return
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return
  event.preventDefault()
  app.go(`${pathname}${search}`)
})
addEventListener('popstate', () => {
  if (app !== null) showAddressed(app)
})
listenForShortcuts(() => {
  if (app !== null) openShortcutHelp(app)
})

/**
 * Shows the address's view, or `signedOut` where there is no session. An error that may pass says nothing of the session:
 * it is asked for again.
 */
async function openArea(signedOut = () => showSignIn(), startArea = start) {
  try {
    const session = await screen.withRetries(() => currentSession())
    if (session === null) signedOut()
    else await screen.withRetries(() => startArea(session))
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
  app = null
  screen.showLoading()
  /**
   * @param {string} title
   * @param {string} reason
   */
  const refuse = (title, reason) => showSignedOut(createClosedLink(title, reason))
  try {
    const { address } = await screen.withRetries(() => openPortalLink(token, isConfirmed))
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

/** `#portal=…`: the fragment that a portal link has, and that browsers send to no server. */
const TOKEN = /^#portal=(.+)$/

/** Returns the token of the portal link that the page was opened with, and removes it from the address; null without one. */
function takePortalToken() {
  const token = TOKEN.exec(location.hash)?.[1] ?? null
  if (token !== null) history.replaceState(null, '', `${location.pathname}${location.search}`)
  return token
}

// Where the page is open already, another link changes no more than the fragment.
addEventListener('hashchange', () => {
  const token = takePortalToken()
  if (token !== null) void openLink(token)
})
const portalToken = takePortalToken()
void (portalToken === null ? openArea() : openLink(portalToken))
