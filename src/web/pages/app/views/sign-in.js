import { ApiProblem, signIn } from '../lib/api.js'
import { html } from '../lib/html.js'
import { createTask } from '../parts/dialog.js'
import { inWords, problemNote } from '../parts/problem.js'
import { createEntrance } from '../parts/screen.js'

/** @import { NamedMember, View } from '../types.d.ts' */

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
  const task = createTask({ update }, (error) => {
    const isInvalid = error instanceof ApiProblem && error.problem.status === 401
    return isInvalid ? 'This key is not valid. Check that it is complete and not revoked.' : inWords(error)
  })

  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault()
    const element = /** @type {HTMLFormElement} */ (event.currentTarget)
    const field = /** @type {HTMLInputElement} */ (element.elements.namedItem('key'))
    await task.run(async () => {
      const session = await form.send(field.value.trim())
      element.reset()
      await onSignedIn(session)
    })
    if (task.problem === '') return
    field.focus()
    field.select()
  }
  return {
    ...createEntrance(
      form.title,
      () =>
        html`<p class="faint">${form.purpose}</p>
          ${reason === '' ? '' : html`<p class="note" role="status">${reason}</p>`}
          <form class="card" @submit=${submit}>
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
            ${problemNote(task.problem)}
            <button class="primary" ?disabled=${task.isBusy}>
              ${task.isBusy ? 'Signing in …' : 'Sign in'}
            </button>
          </form>`,
    ),
    title: 'Sign in',
  }
}

/**
 * Asks before the member of a portal link takes the place of the one who is signed in: another page may have opened
 * the link, so that the user works in an organisation of the attacker.
 * @param {{ signedIn: NamedMember, requested: NamedMember, onStay: () => void, onSwitch: () => void }} options
 * @returns {View}
 */
export function createAccountQuestion({ signedIn, requested, onStay, onSwitch }) {
  return createEntrance(
    'Change the account?',
    () =>
      html`<p>You are signed in as ${named(signedIn)}. This link signs you in as ${named(requested)}.</p>
        <p class="faint">If you did not ask for this link, stay. Your present session ends if you change.</p>
        <p class="bar">
          <button type="button" class="primary" @click=${onStay}>Stay ${signedIn.member.name}</button>
          <button type="button" @click=${onSwitch}>Change to ${requested.member.name}</button>
        </p>`,
  )
}

/**
 * Takes the place of the area where another tab signed in as another member.
 * @param {NamedMember} former
 * @returns {View}
 */
export function createLeftAccount(former) {
  return createEntrance(
    'Signed in as another member',
    () =>
      html`<p role="alert">
          Another tab of this browser is signed in as another member, so ${named(former)} is no longer shown
          here.
        </p>
        <p><a href="/developer">Continue as the member who is signed in</a></p>`,
  )
}

/**
 * Says why a portal link does not open the area.
 * @param {string} title
 * @param {string} reason
 * @returns {View}
 */
export function createClosedLink(title, reason) {
  return createEntrance(
    title,
    () =>
      html`<p role="alert">${reason}</p>
        <p class="faint">
          Go back to the page that you came from, and open the developer area from there again.
        </p>
        <p><a href="/developer">Continue without a link</a></p>`,
  )
}

/** @param {NamedMember} who */
function named({ organisation, member }) {
  return html`<b>${member.name}</b> of <b>${organisation.name}</b>`
}
