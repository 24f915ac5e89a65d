import { ApiProblem, signIn } from '../lib/api.js'
import { BRAND } from '../lib/brand.js'
import { html } from '../lib/html.js'
import { inWords, problemNote } from '../parts/problem.js'

/** @import { Session, View } from '../types.d.ts' */

/**
 * Takes an API key, once: after this the browser has a session in a cookie that no script can read.
 * @param {{ update: () => void, reason: string, onSignedIn: (session: Session) => Promise<void> }} options
 * @returns {View}
 */
export function createSignIn({ update, reason, onSignedIn }) {
  let problem = ''
  let isBusy = false

  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault()
    const form = /** @type {HTMLFormElement} */ (event.currentTarget)
    const field = /** @type {HTMLInputElement} */ (form.elements.namedItem('key'))
    if (isBusy) return
    isBusy = true
    problem = ''
    update()
    try {
      const session = await signIn(field.value.trim())
      form.reset()
      await onSignedIn(session)
    } catch (error) {
      const isInvalid = error instanceof ApiProblem && error.problem.status === 401
      problem = isInvalid
        ? 'This key is not valid. Check that it is complete and not revoked.'
        : inWords(error)
      field.focus()
      field.select()
    } finally {
      isBusy = false
      update()
    }
  }
  return {
    title: 'Sign in',
    render: () =>
      html`<main class="sign-in">
        <img src=${BRAND.logo} alt="" width="48" height="48" />
        <h1 tabindex="-1">Developer area</h1>
        <p class="faint">See what your webhooks delivered, and repair what they did not.</p>
        ${reason === '' ? '' : html`<p class="note" role="status">${reason}</p>`}
        <form @submit=${submit}>
          <label for="key">API key</label>
          <input
            id="key"
            name="key"
            type="password"
            required
            autocomplete="current-password"
            spellcheck="false"
            autocapitalize="off"
            aria-describedby="key-hint"
          />
          <p id="key-hint" class="hint">
            You act as the key's member. The key itself is not kept in this browser.
          </p>
          ${problemNote(problem)}
          <button class="primary" ?disabled=${isBusy}>${isBusy ? 'Signing in …' : 'Sign in'}</button>
        </form>
      </main>`,
  }
}
