import { ApiProblem, call, currentSession, parsed } from '../app/lib/api.js'
import { html } from '../app/lib/html.js'
import { createTimes } from '../app/lib/times.js'
import { createScreen, reasonOf, renderFrame } from '../app/parts/screen.js'
import { createSignIn } from '../app/views/sign-in.js'
import { createOperatorView } from './view.js'

/** @import { OperatorSession } from '../app/types.d.ts' */
/** @import { OperatorApp } from './view.js' */

const SESSION = '/api/operator/session'

const times = createTimes(Intl.DateTimeFormat().resolvedOptions().timeZone)

/** @type {OperatorApp | null} */
let app = null

const screen = createScreen('Operator', (view) =>
  app === null
    ? view.render()
    : renderFrame(
        {
          home: '/operator',
          places: html`<a href="/operator" aria-current="page">Operator</a>`,
          who: app.session.name,
          of: 'operator key',
          label: `Operator key ${app.session.name}`,
          signOut,
          timeZone: times.timeZone,
        },
        view,
      ),
)

/** @satisfies {import('../app/views/sign-in.js').SignInForm<OperatorSession>} */
const WITH_OPERATOR_KEY = {
  title: 'Operator',
  purpose: 'See the webhooks of all organisations that need attention, and hold those that do harm.',
  key: 'Operator key',
  hint: 'It needs the scope observe, and manage to hold webhooks. The key itself is not kept in this browser.',
  /** @returns {Promise<OperatorSession>} */
  send: async (/** @type {string} */ key) =>
    parsed(await call('POST', SESSION, { headers: { 'x-operator-key': key } })),
}

function showSignIn(reason = '') {
  const onSignedIn = (/** @type {OperatorSession} */ session) => {
    start(session)
    return Promise.resolve()
  }
  app = null
  screen.show(() => createSignIn(WITH_OPERATOR_KEY, { update: screen.parts.update, reason, onSignedIn }))
}

/** @param {OperatorSession} session */
function start(session) {
  /** @type {OperatorApp} */
  const started = {
    session,
    times,
    ...screen.parts,
    async ask(method, path, body) {
      const signal = method === 'GET' ? screen.parts.viewSignal() : null
      const text = await call(method, path, { body, signal }).catch((/** @type {unknown} */ error) => {
        const hasEnded = error instanceof ApiProblem && error.problem.status === 401
        if (hasEnded && app === started) showSignIn('Your session has ended. Sign in again.')
        throw error
      })
      return parsed(text)
    },
  }
  app = started
  screen.show(() => createOperatorView(started))
}

addEventListener('popstate', () => {
  const shown = app
  if (shown !== null) screen.show(() => createOperatorView(shown))
})

async function signOut() {
  if (await screen.signOut(SESSION)) showSignIn('You are signed out.')
}

/** An error that may pass says nothing of the session: it is asked for again. */
async function open() {
  try {
    /** @type {OperatorSession | null} */
    const session = await screen.withRetries(() => currentSession(SESSION))
    if (session === null) showSignIn()
    else start(session)
  } catch (error) {
    showSignIn(reasonOf(error))
  }
}

void open()
