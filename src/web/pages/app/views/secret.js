import { html, nothing } from '../lib/html.js'
import { lackingToManage } from '../lib/permissions.js'
import { createTask } from '../parts/dialog.js'
import { copyButton } from '../parts/payload.js'
import { problemNote } from '../parts/problem.js'
import { BODY, EVENT_ID, SECRET, SIGNATURE } from '../../docs/request.js'
import { selectField } from '../parts/filter-fields.js'

/** @import { App, Overview } from '../types.d.ts' */

const HIDDEN = '•'.repeat(32)

/** A visible secret is hidden again after this time. */
const SHOWN_MS = 60_000

/**
 * The signing secret, hidden until an authorised member requests it, and how a signature is verified with it. Each display
 * is in the audit trail.
 * @param {App} app
 * @param {string} id
 */
export function createSecret(app, id) {
  /** @type {string | null} */
  let secret = null
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const verification = createVerification(app)
  const task = createTask(app)
  const hide = () => {
    clearTimeout(timer)
    secret = null
    app.update()
    void verification.signWith(null)
  }
  const reveal = () =>
    task.run(async () => {
      const { signingSecret } = await app.api.signingSecret(id)
      secret = signingSecret
      timer = setTimeout(hide, SHOWN_MS)
      app.update()
      await verification.signWith(secret)
    })
  return {
    stop: hide,
    /** @param {Overview} webhook */
    render({ subscribedEventKeys }) {
      const lacking = lackingToManage(app, subscribedEventKeys)
      return html`<section class="card secret">
          <h2>Signing secret</h2>
          <p><code>${secret ?? HIDDEN}</code></p>
          ${
            lacking.length > 0
              ? html`<p class="hint">
                  Only members who may change this webhook can see it. You lack: ${lacking.join(', ')}.
                </p>`
              : html`<div class="buttons">
                  ${
                    secret === null
                      ? html`<button type="button" class="quiet" @click=${reveal}>Reveal</button>`
                      : html`<button type="button" class="quiet" @click=${hide}>Hide</button>
                          ${copyButton(app, 'signing secret', secret)}`
                  }
                </div>`
          }
          ${problemNote(task.problem)}
        </section>
        ${verification.render()}`
    },
  }
}

/**
 * How an endpoint verifies a signature: an example of a request, and programs that verify it.
 * @param {App} app
 */
function createVerification(app) {
  let language = VERIFY_SAMPLES[0]?.language ?? ''
  /** The example's signature by the webhook's own secret; null while that is hidden. @type {string | null} */
  let ownSignature = null

  const choose = (/** @type {string} */ chosen) => {
    language = chosen
    app.update()
  }
  const languages = VERIFY_SAMPLES.map((sample) => [sample.language])
  const program = () => VERIFY_SAMPLES.find((sample) => sample.language === language)?.program ?? ''

  return {
    /**
     * Signs the example with the secret that is shown, or with the example's.
     * @param {string | null} secret
     */
    async signWith(secret) {
      // Browsers compute nothing like it on a page that came without TLS.
      ownSignature = secret === null || !isSecureContext ? null : await signatureOf(secret, BODY)
      app.update()
    },
    render: () =>
      html`<section class="card verification">
        <h2>Verify a delivery</h2>
        <p>
          <code>X-Webhook-Signature</code> is the HMAC-SHA256 of the raw body. The key is the signing secret
          as text: do not decode it from hexadecimal. <code>X-Webhook-Event-ID</code> is the same on every
          retry of a delivery: handle each one once.
        </p>
        <h3>An example</h3>
        <p class="hint">
          ${
            ownSignature === null
              ? html`Signed with the example secret <code>${SECRET}</code>, which is not yours.`
              : 'Signed with the secret of this webhook, which is shown above.'
          }
        </p>
        <pre tabindex="0" role="region" aria-label="Example of a delivery" class="wrap">
${`Content-Type: application/json
X-Webhook-Event-ID: ${EVENT_ID}
X-Webhook-Signature: ${ownSignature ?? SIGNATURE}

${BODY}`}</pre>
        <div class="bar">
          ${selectField('Language', language, languages, choose, 'inline')}
          ${program() === '' ? nothing : copyButton(app, 'program', program())}
        </div>
        <pre tabindex="0" role="region" aria-label="Program in ${language}">${program()}</pre>
        <p class="hint">
          A whole program that needs nothing but its language. The function in it is what your endpoint needs.
        </p>
      </section>`,
  }
}

/**
 * @param {string} secret
 * @param {string} body
 */
async function signatureOf(secret, body) {
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign'])
  const digest = new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(body)))
  return `sha256=${[...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
}
