import { html, nothing } from '../app/lib/html.js'
import { selectField } from '../app/parts/filter-fields.js'
import { renderCode } from './code.js'
import { problemsOf, resolved } from './document.js'
import { BODY, SECRET, SIGNATURE } from './request.js'
import { inCode, renderSchema } from './schema.js'

/** @import { Template } from '../app/types.d.ts' */
/** @import { Document } from './document.js' */
/** @import { Page } from './try-it.js' */

/**
 * @param {Page} page
 * @returns {Template}
 */
export function renderAuthentication(page) {
  return html`<section id="authentication">
    <h2>Authentication</h2>
    <div class="card">
      <p>
        Send your API key with every request, in the header <code>x-api-key</code>. The platform that runs
        this service gives you the key; it is shown once, so keep it where secrets are kept, never in a page
        or an app.
      </p>
      ${renderCode(page, 'curl with a key', `curl ${location.origin}/api/session -H "x-api-key: $POSTHORN_KEY"`)}
      <p>
        The answer says who you are: your organisation, whose id is in every path, and your permissions. A key
        acts as its member, in its organisation only: everything of another organisation is 404. Without a
        valid key the answer is 401, without a permission 403 with <code>missingPermissions</code>.
      </p>
      <p>
        A browser signs in once with the key (<a href="#signIn">POST /api/session</a>) and has a session in a
        cookie after that: the <a href="/developer">developer area</a> works with it, and so does "Try it" on
        this page. <code>EventSource</code>, which cannot send a header, opens the event stream with a
        <a href="#createStreamTicket">ticket</a>.
      </p>
      <p>
        Every answer to a valid key carries <code>RateLimit</code>. After a 429 or 503, wait for the seconds
        that <code>Retry-After</code> gives. Repeat a POST safely with the same <code>Idempotency-Key</code>.
      </p>
    </div>
  </section>`
}

/**
 * @param {Document} shown
 * @param {Page} page
 * @param {string} key the event whose payload is shown
 * @param {(key: string) => void} choose
 * @returns {Template}
 */
export function renderReceiving(shown, page, key, choose) {
  const event = shown.webhooks[key]?.post
  const body = event?.requestBody?.content['application/json']
  const keys = Object.entries(shown.webhooks).map(([name, { post }]) => [name, `${name} · ${post.summary}`])
  const parameters = (event?.parameters ?? []).map((parameter) => resolved(shown, parameter))
  return html`<section id="receiving">
    <h2>What your endpoint receives</h2>
    <div class="card">
      <p>
        Each delivery is one POST to the URL of your webhook, with the envelope as its body: one line of JSON
        in UTF-8. Answer with any status from 200 to 299 within 15 seconds, unless the operator sets another
        limit, and do what takes longer afterwards. Everything else, a redirect too, is a failed attempt; the
        next follows after 1, 2, 4 and 8 seconds, 5 and 30 minutes, 2, 6 and 24 hours.
      </p>
      <h3>Headers</h3>
      <dl class="schema">
        ${parameters.map(
          ({ name, description, example }) =>
            html`<div>
              <dt><code>${name}</code></dt>
              <dd class="hint">${inCode(description ?? '')} · <code>${String(example)}</code></dd>
            </div>`,
        )}
      </dl>
      <p>
        A delivery can arrive more than once: remember the <code>X-Webhook-Event-ID</code> that you have
        handled, and answer a known one with 200. No order is promised: compare <code>timestamp</code>.
      </p>
      <h3>Verify the signature</h3>
      <p>
        Compute the HMAC-SHA256 of the raw body, the bytes as they arrive, before anything parses them. The
        key is the signing secret of the webhook: its 64 characters as text,
        <b>not decoded from hexadecimal</b>. You see the secret when you create the webhook, and at
        <a href="#getSigningSecret">signing-secret</a>. Compare in constant time, and refuse what does not
        match.
      </p>
      ${VERIFY_SAMPLES.map(
        ({ language, program }, index) =>
          html`<details ?open=${index < 2}>
            <summary>${language}</summary>
            ${renderCode(page, `program in ${language}`, program)}
          </details>`,
      )}
      <p>A delivery to check your code by:</p>
      ${renderCode(
        page,
        'delivery to check by',
        `printf '%s' '${BODY}' | openssl dgst -sha256 -hmac ${SECRET}\n\nX-Webhook-Signature: ${SIGNATURE}`,
      )}
      <h3>Events</h3>
      ${selectField('Event key', key, keys, choose, '')}
      ${
        body === undefined
          ? nothing
          : html`${renderCode(page, `example of ${key}`, JSON.stringify(body.example, null, 2))}
            ${renderSchema(shown, body.schema)}`
      }
    </div>
  </section>`
}

/**
 * @param {Document} shown
 * @returns {Template}
 */
export function renderProblems(shown) {
  const { Problem: problem, FieldProblemCode: fieldCode } = shown.components.schemas
  return html`<section id="problems">
    <h2>Errors</h2>
    <div class="card">
      <p>
        Every refusal is <code>application/problem+json</code> (RFC 9457). <code>code</code> is stable: let
        programs decide by it, and show <code>detail</code> to people.
      </p>
      ${problem === undefined ? nothing : renderSchema(shown, problem)}
      <h3>Codes</h3>
      <dl class="codes">
        ${problemsOf(shown).map(
          ([code, { summary, description, value }]) =>
            html`<div>
              <dt><b>${value.status}</b> <code>${code}</code></dt>
              <dd>${inCode(summary)} <span class="hint">${inCode(description)}</span></dd>
            </div>`,
        )}
      </dl>
      <h3>Codes of <code>errors</code></h3>
      <dl class="codes">
        ${Object.entries(fieldCode?.['x-enum-descriptions'] ?? {}).map(
          ([code, meaning]) =>
            html`<div>
              <dt><code>${code}</code></dt>
              <dd>${inCode(meaning)}</dd>
            </div>`,
        )}
      </dl>
    </div>
  </section>`
}
