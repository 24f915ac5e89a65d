// Follows the event stream and prints one line for each event: its key, its id, its envelope.
//
//   POSTHORN_KEY=phk_… POSTHORN_ORG=org_demo node node.mjs
//
// Node 20 or newer, no packages. After a break it goes on where it was; start it with LAST_EVENT_ID to do so across
// its own restarts. EVENTS narrows what is sent: EVENTS=invoice:paid,customer:created.
import { setTimeout as delay } from 'node:timers/promises'

const {
  POSTHORN_URL = 'http://127.0.0.1:3000',
  POSTHORN_ORG,
  POSTHORN_KEY,
  EVENTS = '',
  LAST_EVENT_ID = '',
} = process.env

// The server sends a comment every 15 seconds. Nothing for so long means that the connection is dead.
const SILENCE_MS = 45_000

let lastEventId = LAST_EVENT_ID
let retryMs = 3_000

for (;;) {
  try {
    await follow()
  } catch (error) {
    console.error(`The stream broke: ${error.message}`)
  }
  await delay(retryMs)
}

async function follow() {
  const url = new URL(`/api/orgs/${POSTHORN_ORG}/events/stream`, POSTHORN_URL)
  if (EVENTS !== '') url.searchParams.set('events', EVENTS)
  const silence = new AbortController()
  let timer = setTimeout(() => silence.abort(new Error('silence')), SILENCE_MS)
  try {
    const headers = {
      'x-api-key': POSTHORN_KEY,
      ...(lastEventId === '' ? {} : { 'last-event-id': lastEventId }),
    }
    const response = await fetch(url, { headers, signal: silence.signal })
    if (response.status === 429 || response.status >= 500) {
      // The next stream sets it back: `retry` is the first that it sends.
      retryMs = 1_000 * Number(response.headers.get('retry-after')) || retryMs
      throw new Error(`status ${response.status}`)
    }
    if (!response.ok) {
      console.error(`Refused: ${await response.text()}`)
      process.exit(1)
    }
    const decoder = new TextDecoder()
    let text = ''
    for await (const chunk of response.body) {
      timer.refresh()
      text += decoder.decode(chunk, { stream: true })
      const blocks = text.split('\n\n')
      // What follows the last empty line is not complete yet.
      text = blocks.pop()
      for (const block of blocks) take(block)
    }
  } finally {
    clearTimeout(timer)
    // Ends a body that was not read to its end, with its connection.
    silence.abort()
  }
}

/** One block of the stream: lines of a name and a value each. A line that begins with a colon is a comment. */
function take(block) {
  const fields = new Map()
  for (const line of block.split('\n')) {
    const [, name, value] = /^([^:]+): ?(.*)$/s.exec(line) ?? []
    if (name !== undefined) fields.set(name, value)
  }
  if (fields.has('retry')) retryMs = Number(fields.get('retry'))
  if (fields.get('event') === 'gap') console.error(`Events may be missing: ${fields.get('data')}`)
  else if (fields.has('data') && fields.get('event') !== 'position')
    console.log(`${fields.get('event')} ${fields.get('id')} ${fields.get('data')}`)
  // Last: what was not handled is sent again.
  if (fields.has('id')) lastEventId = fields.get('id')
}
