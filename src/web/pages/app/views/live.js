import { html, nothing } from '../lib/html.js'
import { followEvents } from '../lib/follow-events.js'
import { addressed, deliveriesLink, given, keepInAddress, placeLink } from '../lib/links.js'
import { poll } from '../lib/poll.js'
import { plural } from '../lib/times.js'
import { keyField } from '../parts/filter-fields.js'
import { CRUMBS, loading, renderHeading } from '../parts/listing.js'
import { staleNote } from '../parts/problem.js'
import { mark } from '../parts/state-mark.js'
import { stateField } from './delivery-filter.js'
import { createDeliveryTable } from './delivery-table.js'
import { createSidePanel } from './side-panel.js'

/** @import { App, Delivery, Template, View } from '../types.d.ts' */
/** @import { Connection } from '../lib/follow-events.js' */

/** Read so often without an event too: retries, test events and events of other keys are not in the stream. */
const EVERY_MS = 3_000

/** An event is followed by a reading once its first attempt has usually ended; many events by one. */
const READ_AFTER_EVENT_MS = 500

/**
 * The newest deliveries of a webhook as they come; with `webhookId` null those of all webhooks. The event stream says when
 * to read them, so that no gap of the stream is one of the list.
 * @param {App} app
 * @param {string | null} webhookId
 * @returns {{ render: () => Template, stop: () => void }}
 */
export function createLive(app, webhookId) {
  const filter = { state: addressed('state'), eventKey: addressed('eventKey') }
  const tail = createTail()
  let version = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer

  const read = async () => {
    const mine = version
    const query = { ...given(filter), limit: String(TAIL_SIZE) }
    const { data } = await (webhookId === null
      ? app.api.recentDeliveries(query)
      : app.api.deliveries(webhookId, query))
    if (mine !== version) return
    tail.take(data)
    const isNamed = data.every((row) => app.webhooks?.some(({ id }) => id === row.webhookId) === true)
    if (webhookId === null && !isNamed) app.webhooks = (await app.api.overview()).data
  }
  const polling = poll(app, read, EVERY_MS)
  const onEvent = () => {
    timer ??= setTimeout(() => {
      timer = undefined
      void polling.refresh()
    }, READ_AFTER_EVENT_MS)
  }
  const stream = followEvents(
    () => app.api.streamUrl(),
    app.eventKeys.map(({ key }) => key),
    { onEvent, onChange: app.update },
  )
  const panel = createSidePanel(app)
  const table = createDeliveryTable(app, webhookId, null, polling.refresh, panel)

  /** @param {Partial<typeof filter>} changes */
  const change = (changes) => {
    Object.assign(filter, changes)
    for (const [name, value] of Object.entries(changes)) keepInAddress(name, value)
    version++
    tail.clear()
    app.update()
    void polling.refresh()
  }
  const togglePause = () => {
    tail.togglePause()
    app.update()
  }

  return {
    stop: () => {
      clearTimeout(timer)
      stream.stop()
      polling.stop()
      panel.stop()
    },
    render() {
      const { rows, pause } = tail
      return panel.render(
        html`<section class="card deliveries" aria-label="Live deliveries">
          <h2 class="unseen">Live deliveries</h2>
          <div class="filter" role="search" aria-label="Filter live deliveries">
            ${stateField(filter.state, change)} ${keyField(app, filter.eventKey, change)}
            <button type="button" @click=${togglePause}>${pause === null ? 'Pause' : 'Resume'}</button>
          </div>
          <p class="live">
            <span role="status"
              >${pause === null ? connectionMark(stream.connection) : mark('warn', `Paused at ${app.times.clock(pause.at)}`)}</span
            >
            ${pause === null ? nothing : html`<span>${arrivals(pause)}</span>`}
          </p>
          ${staleNote(app, polling.answers)} ${missed()} ${rows === null ? loading(polling.answers) : nothing}
          ${rows === null || rows.length === 0 ? nothing : table.render(rows)}
          ${rows?.length === 0 ? html`<p class="faint">Nothing so far. Deliveries appear here as they come.</p>` : nothing}
          ${rows?.length === TAIL_SIZE ? html`<p class="faint">The newest ${TAIL_SIZE} are shown.</p>` : nothing}
        </section>`,
      )
    },
  }

  function missed() {
    if (tail.missedAt === null) return nothing
    const link =
      webhookId === null
        ? html`<a href=${placeLink('events')}>All events</a>`
        : html`<a href=${deliveriesLink(webhookId)}>All deliveries</a>`
    return html`<p class="hint">
      At ${app.times.clock(tail.missedAt)} more had come than is shown here. ${link}
    </p>`
  }
}

/** @param {{ arrived: number, isMore: boolean }} pause */
function arrivals({ arrived, isMore }) {
  return `${isMore ? 'At least ' : ''}${plural(arrived, 'delivery')} came meanwhile.`
}

/**
 * @param {Connection} connection
 * @returns {Template}
 */
function connectionMark(connection) {
  const fallback = html`<span class="faint">Read every ${plural(EVERY_MS / 1_000, 'second')}.</span>`
  switch (connection) {
    case 'connecting':
      return mark('calm', 'Connecting')
    case 'live':
      return mark('good', 'Live')
    case 'reconnecting':
      return html`${mark('warn', 'Reconnecting')} ${fallback}`
    case 'refused':
      return html`${mark('calm', 'No event stream')} ${fallback}`
  }
}

/**
 * The newest deliveries of all webhooks.
 * @param {App} app
 * @returns {View}
 */
export function createLiveView(app) {
  const live = createLive(app, null)
  return {
    title: 'Live deliveries',
    stop: live.stop,
    render: () =>
      html`${CRUMBS} ${renderHeading('Live deliveries', 'Of all webhooks, newest first, as they come.')}
      ${live.render()}`,
  }
}

/** The newest deliveries that fit are shown, and no others are kept. */
const TAIL_SIZE = 50

/** What comes during a pause is counted up to here. */
const MAX_COUNTED = 1_000

/**
 * The newest deliveries as they were last read, or as they were when the tail was paused. `missedAt`: when more had come
 * between two readings than one of them gives.
 */
function createTail() {
  /** @type {Delivery[] | null} */
  let latest = null
  /** @type {{ at: number, rows: Delivery[], after: string, arrived: Set<string>, isMore: boolean } | null} */
  let pause = null
  /** @type {number | null} */
  let missedAt = null
  /** Ids are given in the order of time. */
  let newestId = ''

  return {
    get rows() {
      return pause?.rows ?? latest
    },
    get missedAt() {
      return missedAt
    },
    /** Null where it is not paused. `isMore`: more came than were counted. */
    get pause() {
      return pause === null ? null : { at: pause.at, arrived: pause.arrived.size, isMore: pause.isMore }
    },
    /** @param {Delivery[]} read newest first */
    take(read) {
      const isOverrun = newestId !== '' && read.length === TAIL_SIZE && (read.at(-1)?.id ?? '') > newestId
      if (isOverrun) missedAt = Date.now()
      latest = read
      const [newest = { id: '' }] = read
      if (newest.id > newestId) newestId = newest.id
      if (pause === null) return
      const { after, arrived } = pause
      for (const { id } of read) if (id > after && arrived.size < MAX_COUNTED) arrived.add(id)
      if (isOverrun || arrived.size === MAX_COUNTED) pause.isMore = true
    },
    /** Begins anew, with another filter. */
    clear() {
      ;[latest, pause, missedAt, newestId] = [null, null, null, '']
    },
    togglePause() {
      pause =
        pause === null
          ? { at: Date.now(), rows: latest ?? [], after: newestId, arrived: new Set(), isMore: false }
          : null
    },
  }
}
