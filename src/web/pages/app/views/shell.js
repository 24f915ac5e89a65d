import { html } from '../lib/html.js'

/** @import { App, Template, View } from '../types.d.ts' */

/**
 * What stands around every view of a signed-in person.
 * @param {App} app
 * @param {View} view
 * @returns {Template}
 */
export function renderShell(app, view) {
  const { organisation, member } = app.session
  return html`<a class="skip" href="#main" @click=${toMain}>Skip to content</a>
    <header class="top">
      <div class="inner">
        <a class="brand" href="/developer"
          ><img src="/assets/icon.svg" alt="" width="24" height="24" /> Posthorn</a
        >
        <span class="who"><b>${organisation.name}</b> <span class="faint">${member.name}</span></span>
        <nav aria-label="Site">
          <a href="/docs" target="_blank" rel="noopener">API reference</a>
          <button type="button" class="quiet" @click=${() => app.signOut()}>Sign out</button>
        </nav>
      </div>
    </header>
    <main id="main" tabindex="-1">${view.render()}</main>
    <footer class="faint">
      Times are in ${app.times.timeZone.replace('_', ' ')}; rest the pointer on one for UTC.
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
