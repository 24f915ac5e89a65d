import { ApiProblem } from './api.js'

const MIN_RETRY_MS = 3_000
const MAX_RETRY_MS = 30_000

/**
 * How the event stream stands: `refused` where the session may not open it, such as one of a portal link.
 * @typedef {'connecting' | 'live' | 'reconnecting' | 'refused'} Connection
 */

/**
 * Calls `onEvent` for each event of the stream, for a gap in it, and each time the stream was opened, since events may
 * have come before; `onChange` when the connection changes. A hidden page holds no stream open: a browser has few
 * connections to one host.
 * @param {() => Promise<string>} getUrl returns an address of the stream that is good for one request
 * @param {readonly string[]} eventKeys an event has its key as its type
 * @param {{ onEvent: () => void, onChange: () => void }} listeners
 */
export function followEvents(getUrl, eventKeys, { onEvent, onChange }) {
  /** @type {EventSource | null} */
  let source = null
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  let pauseMs = MIN_RETRY_MS
  /** Changes with each opening and closing: what was begun before has no effect any more. */
  let version = 0
  /** @type {Connection} */
  let connection = 'connecting'

  /** @param {Connection} next */
  const change = (next) => {
    if (connection === next) return
    connection = next
    onChange()
  }
  const close = () => {
    version++
    clearTimeout(timer)
    source?.close()
    source = null
  }
  const reopen = () => {
    close()
    timer = setTimeout(() => void open(), pauseMs)
    pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)
    change('reconnecting')
  }
  const open = async () => {
    close()
    const mine = version
    try {
      const url = await getUrl()
      if (mine !== version) return
      source = new EventSource(url)
    } catch (error) {
      if (mine !== version) return
      if (error instanceof ApiProblem && error.problem.status === 403) change('refused')
      else reopen()
      return
    }
    for (const type of [...eventKeys, 'gap', 'payload_erased']) source.addEventListener(type, onEvent)
    source.addEventListener('open', () => {
      pauseMs = MIN_RETRY_MS
      change('live')
      onEvent()
    })
    // The browser would repeat the request, with an address that was used.
    source.addEventListener('error', () => {
      if (mine === version) reopen()
    })
  }
  const onVisibility = () => {
    if (document.hidden) close()
    else if (connection !== 'refused') void open()
  }
  document.addEventListener('visibilitychange', onVisibility)
  if (!document.hidden) void open()

  return {
    get connection() {
      return connection
    },
    stop() {
      document.removeEventListener('visibilitychange', onVisibility)
      close()
    },
  }
}
