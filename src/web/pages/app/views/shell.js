import { BRAND } from '../lib/brand.js'
import { html } from '../lib/html.js'
import { apiKeysLink, auditLink, catalogueLink, eventsLink, notificationsLink } from '../lib/links.js'
import { renderThemeSwitch } from '../parts/theme-switch.js'
import { openShortcutHelp } from './shortcut-help.js'

/** @import { App, Template, View } from '../types.d.ts' */

/**
 * The frame around every view of a signed-in member.
 * @param {App} app
 * @param {View} view
 * @returns {Template}
 */
export function renderShell(app, view) {
  const { organisation, member } = app.session
  const current = new URLSearchParams(location.search).get('view') ?? ''
  /**
   * @param {string} place
   * @param {string} link
   * @param {string} words
   */
  const place = (place, link, words) =>
    html`<a href=${link} aria-current=${place === current ? 'page' : 'false'}>${words}</a>`
  return html`<a class="skip" href="#main" @click=${toMain}>Skip to content</a>
    <header class="top">
      <div class="inner">
        <a class="brand" href="/developer"
          ><img src=${BRAND.logo} alt="" width="24" height="24" /> <span>${BRAND.name}</span></a
        >
        <nav class="places" aria-label="Site">
          ${place('', '/developer', 'Webhooks')} ${place('events', eventsLink(), 'Events')}
          ${place('catalogue', catalogueLink(), 'Catalogue')}
          ${member.fullAccess ? place('audit', auditLink(), 'Audit') : ''}
          <a href="/docs" target="_blank" rel="noopener">API reference</a>
        </nav>
        <div class="account">
          <span class="who" title="${organisation.name}, ${member.name}"
            ><b>${organisation.name}</b> <span class="faint">${member.name}</span></span
          >
          ${place('api-keys', apiKeysLink(), 'API keys')}
          ${place('notifications', notificationsLink(), 'Notifications')}
          <button type="button" class="quiet" @click=${() => app.signOut()}>Sign out</button>
        </div>
      </div>
    </header>
    <main id="main" tabindex="-1">${view.render()}</main>
    <footer class="faint">
      <span>Times are in ${app.times.timeZone.replace('_', ' ')}; rest the pointer on one for UTC.</span>
      <button type="button" class="quiet" @click=${() => openShortcutHelp(app)}>Keyboard shortcuts</button>
      ${renderThemeSwitch()}
    </footer>`
}

/**
 * The address of this page names its view: the skip link must not change it.
 * @param {Event} event
 */
function toMain(event) {
  event.preventDefault()
  event.stopPropagation()
  document.getElementById('main')?.focus()
}
