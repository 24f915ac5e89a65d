import { ApiProblem, call, currentSession, isTransient, parsed } from '../app/lib/api.js'
import { BRAND } from '../app/lib/brand.js'
import { html, render } from '../app/lib/html.js'
import { createTimes } from '../app/lib/times.js'
import { createDialog } from '../app/parts/dialog.js'
import { renderThemeSwitch } from '../app/parts/theme-switch.js'
import { createToast } from '../app/parts/toast.js'
import { createSignIn } from '../app/views/sign-in.js'
import { createOperatorView } from './view.js'

/** @import { OperatorSession, View } from '../app/types.d.ts' */
/** @import { OperatorApp } from './view.js' */

const SESSION = '/api/operator/session'
const RETRY_MS = 3_000

const root = /** @type {HTMLElement} */ (document.getElementById('app'))
const dialog = createDialog(update)
const toast = createToast(update)
const times = createTimes(Intl.DateTimeFormat().resolvedOptions().timeZone)

/** @type {{ session: OperatorSession | null, view: View }} */
const state = {
  session: null,
  view: { title: 'Operator', render: () => html`<p class="alone">Loading …</p>` },
}

let isScheduled = false

/** Renders once for all changes of the same event-loop iteration. */
function update() {
  if (isScheduled) return
  isScheduled = true
  queueMicrotask(() => {
    isScheduled = false
    const { session, view } = state
    document.title = `${view.title} · ${BRAND.name}`
    render(
      html`${session === null ? view.render() : renderShell(session, view)} ${dialog.render()}
      ${toast.render()}`,
      root,
    )
    dialog.afterRender()
  })
}

/**
 * @param {OperatorSession | null} session
 * @param {View} view
 */
function show(session, view) {
  dialog.close()
  state.view.stop?.()
  Object.assign(state, { session, view })
  update()
}

/** @satisfies {import('../app/views/sign-in.js').SignInForm<OperatorSession>} */
const WITH_OPERATOR_KEY = {
  title: 'Operator',
  purpose: 'See the webhooks of all organisations that need attention, and hold those that do harm.',
  key: 'Operator key',
  hint: 'It needs the scope observe, and manage to hold webhooks. The key itself is not kept in this browser.',
  send: async (/** @type {string} */ key) =>
    /** @type {OperatorSession} */ (
      parsed(await call('POST', SESSION, { headers: { 'x-operator-key': key } }))
    ),
}

function showSignIn(reason = '') {
  const onSignedIn = (/** @type {OperatorSession} */ session) => Promise.resolve(start(session))
  show(null, createSignIn(WITH_OPERATOR_KEY, { update, reason, onSignedIn }))
}

/** @param {OperatorSession} session */
function start(session) {
  /** @type {OperatorApp} */
  const app = {
    session,
    times,
    update,
    openDialog: dialog.open,
    closeDialog: dialog.close,
    showMessage: toast.show,
    async ask(method, path, body) {
      try {
        const text = await call(method, path, body === undefined ? {} : { body })
        return parsed(text)
      } catch (error) {
        const hasEnded = error instanceof ApiProblem && error.problem.status === 401
        if (hasEnded && state.session === session) showSignIn('Your session has ended. Sign in again.')
        throw error
      }
    },
  }
  show(session, createOperatorView(app))
}

async function signOut() {
  await call('DELETE', SESSION).catch(() => undefined)
  showSignIn('You are signed out.')
}

/**
 * The frame around the view.
 * @param {OperatorSession} session
 * @param {View} view
 */
function renderShell({ name }, view) {
  return html`<a class="skip" href="#main">Skip to content</a>
    <header class="top">
      <div class="inner">
        <a class="brand" href="/operator"
          ><img src=${BRAND.logo} alt="" width="24" height="24" /> <span>${BRAND.name}</span></a
        >
        <nav class="places" aria-label="Site">
          <a href="/operator" aria-current="page">Operator</a>
          <a href="/docs" target="_blank" rel="noopener">API reference</a>
        </nav>
        <div class="account">
          <span class="who" title="Operator key ${name}"
            ><b>${name}</b> <span class="faint">operator key</span></span
          >
          <button type="button" class="quiet" @click=${signOut}>Sign out</button>
        </div>
      </div>
    </header>
    <main id="main" tabindex="-1">${view.render()}</main>
    <footer class="faint">
      <span>Times are in ${times.timeZone.replace('_', ' ')}; rest the pointer on one for UTC.</span>
      ${renderThemeSwitch()}
    </footer>`
}

/** An error that may pass says nothing of the session: it is asked for again. */
async function open() {
  try {
    /** @type {OperatorSession | null} */
    const session = await currentSession(SESSION)
    if (session === null) showSignIn()
    else start(session)
  } catch (error) {
    if (!isTransient(error)) {
      showSignIn(error instanceof ApiProblem ? error.message : '')
      return
    }
    const text = `${BRAND.name} cannot be reached. Trying again …`
    show(null, { title: 'Not available', render: () => html`<p class="alone" role="status">${text}</p>` })
    setTimeout(() => void open(), RETRY_MS)
  }
}

// "5 seconds ago" goes on by itself.
setInterval(() => {
  if (!document.hidden) update()
}, 1_000)
update()
void open()
