import { html } from '../lib/html.js'
import { createEntrance } from '../parts/screen.js'

/** @import { NamedMember, View } from '../types.d.ts' */

/**
 * Asks before the member of a portal link takes the place of the one who is signed in: the link may have been opened by
 * another page, for somebody who would have the user work in a foreign organisation.
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
