// Follows the event stream in a page. The page and the stream have one origin: put both behind the same proxy.
//
//   const stop = followEvents({
//     streamUrl: new URL('/api/orgs/org_demo/events/stream', location.href),
//     events: ['invoice:paid', 'customer:created'],
//     getTicket: async () => (await fetch('/my-stream-ticket', { method: 'POST' })).text(),
//     onEvent: (key, envelope, id) => { … },
//     onGap: () => location.reload(),
//   })
//
// `getTicket` asks your own server, which knows who its visitor is and holds the API key. It asks Posthorn:
//
//   const response = await fetch(`${posthorn}/api/orgs/org_demo/events/stream-tickets`, {
//     method: 'POST', headers: { 'x-api-key': process.env.POSTHORN_KEY },
//   })
//   const { ticket } = await response.json()

/**
 * `lastEventId`: where to go on from, if the page remembers. `pauseMs`: before it connects again. Returns a function
 * that ends it.
 */
export function followEvents({ lastEventId = null, pauseMs = 3_000, ...options }) {
  const { streamUrl, events, getTicket, onEvent, onGap } = options
  if (events.length === 0 || events.includes('*'))
    throw new TypeError('name each event key: an EventSource has no listener for all of them')
  let source = null
  let timer = null
  let isOver = false

  async function connect() {
    let ticket
    try {
      ticket = await getTicket()
    } catch {
      return again()
    }
    if (isOver) return
    const url = new URL(streamUrl)
    url.searchParams.set('events', events.join(','))
    url.searchParams.set('ticket', ticket)
    if (lastEventId !== null) url.searchParams.set('lastEventId', lastEventId)
    source = new EventSource(url)
    for (const key of events)
      source.addEventListener(key, (message) => {
        onEvent(key, JSON.parse(message.data), message.lastEventId)
        lastEventId = message.lastEventId
      })
    // Sent first, and every 15 seconds: the page has a place to go on from before its first event.
    source.addEventListener('position', (message) => {
      lastEventId = message.lastEventId
    })
    source.addEventListener('gap', (message) => {
      onGap(JSON.parse(message.data))
      lastEventId = message.lastEventId
    })
    // Left alone, an EventSource connects again with the same URL; but a ticket opens one stream only.
    source.onerror = again
  }

  function again() {
    source?.close()
    if (!isOver) timer = setTimeout(connect, pauseMs)
  }

  void connect()
  return () => {
    isOver = true
    clearTimeout(timer)
    source?.close()
  }
}
