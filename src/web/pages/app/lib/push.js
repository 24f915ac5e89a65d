/** @import { Api, PushSubscriptions } from '../types.d.ts' */

/** The script that shows messages. It controls no page: its scope is the folder that it is in. */
const WORKER = '/assets/app/push-worker.js'
const SCOPE = '/assets/app/'

/**
 * Returns why this browser cannot have push messages, in words; empty where it can.
 * @returns {string}
 */
export function unsupportedReason() {
  if (!isSecureContext) return 'Browsers take push messages only from pages that come over https.'
  const isSupported =
    'serviceWorker' in navigator && 'PushManager' in globalThis && 'Notification' in globalThis
  return isSupported ? '' : 'This browser does not support push messages.'
}

/** @returns {Promise<PushSubscription | null>} the subscription of this browser */
export async function ownSubscription() {
  const registration = await navigator.serviceWorker.getRegistration(SCOPE)
  return (await registration?.pushManager.getSubscription()) ?? null
}

/**
 * Subscribes this browser. Returns false when the member did not allow messages.
 * @param {Api} api
 * @param {string} vapidPublicKey
 */
export async function switchOn(api, vapidPublicKey) {
  if ((await Notification.requestPermission()) !== 'granted') return false
  const registration = await navigator.serviceWorker.register(workerUrl(), { scope: SCOPE })
  await isActive(registration)
  const former = await registration.pushManager.getSubscription()
  // One that was made for another key gets no messages of this one.
  await former?.unsubscribe()
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: vapidPublicKey,
  })
  await api.subscribeToPush(subscription.toJSON())
  return true
}

/**
 * Ends the subscription of this browser, at Posthorn first: what it no longer knows gets no message.
 * @param {Api} api
 * @param {PushSubscriptions} known
 */
export async function switchOff(api, known) {
  const subscription = await ownSubscription()
  const kept = known.data.find(({ endpoint }) => endpoint === subscription?.endpoint)
  if (kept !== undefined) await api.unsubscribeFromPush(kept.id)
  await subscription?.unsubscribe()
}

/**
 * Has the subscription of this browser end with the session that was just opened, where it is the member's own; ends
 * another member's.
 * @param {Api} api
 */
export async function adoptSubscription(api) {
  if (unsupportedReason() !== '') return
  const subscription = await ownSubscription()
  if (subscription === null) return
  const { data } = await api.pushSubscriptions()
  if (data.some(({ endpoint }) => endpoint === subscription.endpoint))
    await api.subscribeToPush(subscription.toJSON())
  else await subscription.unsubscribe()
}

/** @param {ServiceWorkerRegistration} registration */
async function isActive(registration) {
  const worker = registration.installing ?? registration.waiting
  if (registration.active !== null || worker === null) return
  await new Promise((resolve) => {
    worker.addEventListener('statechange', () => {
      if (worker.state === 'activated' || worker.state === 'redundant') resolve(undefined)
    })
  })
}

/** With Trusted Types a script's URL is no text: the policy that makes one knows this script only. */
function workerUrl() {
  const { trustedTypes } = /** @type {TrustedTypesWindow} */ (/** @type {unknown} */ (globalThis))
  if (trustedTypes === undefined) return WORKER
  policy ??= trustedTypes.createPolicy('posthorn-push', { createScriptURL: () => WORKER })
  return policy.createScriptURL('')
}

/**
 * The types of lib.dom do not have it.
 * @typedef {{ createScriptURL(text: string): string }} ScriptUrlPolicy
 * @typedef {{
 *   trustedTypes?: { createPolicy(name: string, rules: ScriptUrlPolicy): ScriptUrlPolicy },
 * }} TrustedTypesWindow
 */

/** @type {ScriptUrlPolicy | undefined} */
let policy
