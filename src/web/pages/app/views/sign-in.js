import { ApiProblem, signIn } from '../lib/api.js'
import { html } from '../lib/html.js'
import { inWords, problemNote } from '../parts/problem.js'
import { createEntrance } from '../parts/screen.js'

/** @import { View } from '../types.d.ts' */

/**
 * What the sign-in with one kind of key says and sends.
 * @template S
 * @typedef {{ title: string, purpose: string, key: string, hint: string, send: (key: string) => Promise<S> }} SignInForm
 */

/** @satisfies {SignInForm<unknown>} */
export const WITH_API_KEY = {
  title: 'Developer area',
  purpose: 'See what your webhooks delivered, and repair what they did not.',
  key: 'API key',
  hint: "You act as the key's member. The key itself is not kept in this browser.",
  send: signIn,
}

/**
 * Takes a key, once: after this the browser has a session in a cookie that no script can read.
 * @template S
 * @param {SignInForm<S>} form
 * @param {{ update: () => void, reason: string, onSignedIn: (session: S) => Promise<void> }} options
 * @returns {View}
 */
export function createSignIn(form, { update, reason, onSignedIn }) {
  let problem = ''
  let isBusy = false

  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault()
    const element = /** @type {HTMLFormElement} */ (event.currentTarget)
    const field = /** @type {HTMLInputElement} */ (element.elements.namedItem('key'))
    if (isBusy) return
    isBusy = true
    problem = ''
    update()
    try {
      const session = await form.send(field.value.trim())
      element.reset()
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
    ...createEntrance(
      form.title,
      () =>
        html`<p class="faint">${form.purpose}</p>
          ${reason === '' ? '' : html`<p class="note" role="status">${reason}</p>`}
          <form @submit=${submit}>
            <label for="key">${form.key}</label>
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
            <p id="key-hint" class="hint">${form.hint}</p>
            ${problemNote(problem)}
            <button class="primary" ?disabled=${isBusy}>${isBusy ? 'Signing in …' : 'Sign in'}</button>
          </form>`,
    ),
    title: 'Sign in',
  }
}
