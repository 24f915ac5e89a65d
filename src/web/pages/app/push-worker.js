/** @import { PushWorker } from './types.d.ts' */

const worker = /** @type {PushWorker} */ (/** @type {unknown} */ (globalThis))

worker.addEventListener('push', (event) => {
  /** @type {unknown} */
  const message = event.data?.json()
  const { title, body, url, tag } = /** @type {Record<string, string>} */ (message)
  event.waitUntil(
    worker.registration.showNotification(title ?? '', {
      body: body ?? '',
      tag: tag ?? '',
      icon: '/assets/icon.svg',
      data: url,
    }),
  )
})

worker.addEventListener('notificationclick', (event) => {
  event.notification.close()
  // A message leads nowhere else than to the developer area that this script came from.
  const { pathname, search } = new URL(String(event.notification.data), worker.location.origin)
  event.waitUntil(worker.clients.openWindow(`${worker.location.origin}${pathname}${search}`))
})
