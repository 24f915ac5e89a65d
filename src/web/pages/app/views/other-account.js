import { BRAND } from '../lib/brand.js'
import { html } from '../lib/html.js'

/** @import { NamedMember, Template, View } from '../types.d.ts' */

/**
 * Asks before the member of a portal link takes the place of the one who is signed in: the link may have been opened by
 * another page, for somebody who would have the user work in a foreign organisation.
 * @param {{ signedIn: NamedMember, requested: NamedMember, onStay: () => void, onSwitch: () => void }} options
 * @returns {View}
 */
export function createAccountQuestion({ signedIn, requested, onStay, onSwitch }) {
  return alone(
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
  return alone(
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
 * @param {string} title
 * @param {() => Template} content
 * @returns {View}
 */
function alone(title, content) {
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

/** @param {NamedMember} who */
function named({ organisation, member }) {
  return html`<b>${member.name}</b> of <b>${organisation.name}</b>`
}
