import { curlCommand } from '../../docs/request.js'
import { html, nothing } from '../lib/html.js'
import { milliseconds } from '../lib/times.js'
import { createTask } from '../parts/dialog.js'
import { createPayload } from '../parts/payload.js'
import { inWords } from '../parts/problem.js'
import { outcomeMark } from '../parts/timeline.js'

/** @import { App, Attempt, DeliveryDetail, SignedRequest } from '../types.d.ts' */

/**
 * What was sent and what came back, beside each other.
 * @param {App} app
 * @param {() => Promise<SignedRequest>} signedRequest
 */
export function createExchange(app, signedRequest) {
  const sent = createPayload(app)
  const answered = createPayload(app, 'Body of the answer')
  const copying = createTask(app, inWords, app.showMessage)
  const copyCurl = () =>
    copying.run(async () => {
      const command = curlCommand(await signedRequest())
      await navigator.clipboard.writeText(command).then(
        () => app.showMessage('Copied the curl command. It has the right signature: keep it to yourself.'),
        () => showCommand(app, command),
      )
    })

  return {
    /**
     * @param {DeliveryDetail} delivery
     * @param {Attempt | undefined} attempt undefined while none was made
     * @param {readonly string[]} lacking what the member lacks to see the signed request
     */
    render: (delivery, attempt, lacking) =>
      html`<section class="card exchange" aria-label="Request">
          <div class="bar">
            <h2>Request</h2>
            ${
              lacking.length === 0 && delivery.payloadErased === null
                ? html`<button type="button" class="quiet" ?disabled=${copying.isBusy} @click=${copyCurl}>
                    Copy as curl
                  </button>`
                : nothing
            }
          </div>
          ${
            lacking.length === 0
              ? nothing
              : html`<p class="hint">
                  The signed request as a curl command is for members that may change the webhook. You lack
                  ${lacking.join(', ')}.
                </p>`
          }
          ${attempt === undefined ? html`<p class="faint">Not sent yet.</p>` : html`<div class="target" tabindex="0" role="region" aria-label="Address of the request"><b>POST</b> <span class="mono">${attempt.url}</span></div>`}
          ${
            delivery.payloadText === null
              ? html`<p class="faint">Its payload is erased.</p>`
              : html`${headersOf('Headers of the request', {
                  ...delivery.requestHeaders,
                  'X-Webhook-Signature': 'not shown; the curl command has it',
                })}
                ${sent.render(delivery.payloadText)}`
          }
        </section>
        <section class="card exchange" aria-label="Response">
          <div class="bar">
            <h2>Response</h2>
            ${attempt === undefined ? nothing : html`<span class="faint">to attempt ${attempt.number}</span>`}
          </div>
          ${attempt === undefined ? html`<p class="faint">None yet.</p>` : response(attempt, delivery)}
        </section>`,
  }

  /**
   * @param {Attempt} attempt
   * @param {DeliveryDetail} delivery
   */
  function response(attempt, { payloadErased }) {
    const { durationMs, error, response: answer } = attempt
    return html`<p>${outcomeMark(attempt)} <span class="faint">after ${milliseconds(durationMs)}</span></p>
      ${error === null ? nothing : html`<p class="bad">${error}</p>`}
      ${
        answer === null
          ? html`<p class="faint">
              ${payloadErased === null ? 'No answer came back.' : 'What was answered is erased.'}
            </p>`
          : html`${headersOf('Headers of the answer', answer.headers)} ${answered.render(answer.body)}
            ${answer.truncated ? html`<p class="hint">It was longer; the rest is not kept.</p>` : nothing}`
      }`
  }
}

/**
 * @param {string} label
 * @param {Record<string, string>} headers
 */
function headersOf(label, headers) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return html`<h3>Headers</h3>
    <pre class="wrap" tabindex="0" role="region" aria-label=${label}>${lines.join('\n')}</pre>`
}

/**
 * For a browser that does not let the page copy.
 * @param {App} app
 * @param {string} command
 */
function showCommand(app, command) {
  const close = app.openDialog({
    label: 'The request as a curl command',
    render: () =>
      html`<h2>The request as a curl command</h2>
        <p>The browser does not let this page copy. Select the command and copy it yourself.</p>
        <pre class="wrap" tabindex="0" role="region" aria-label="curl command">${command}</pre>
        <div class="buttons end">
          <button type="button" @click=${close}>Close</button>
        </div>`,
  })
}
