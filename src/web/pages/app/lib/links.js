/** @import { Session } from '../types.d.ts' */

/**
 * A view that belongs to no single webhook, as an address names it; the list of webhooks where it names none.
 * @typedef {'' | 'events' | 'catalogue' | 'audit' | 'retries' | 'api-keys' | 'live' | 'notifications'} Place
 */

/**
 * Those of the parameters that are not empty.
 * @param {Record<string, string>} parameters
 * @returns {Record<string, string>}
 */
export function given(parameters) {
  return Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== ''))
}

/**
 * The address of a view; what is empty is left out.
 * @param {Record<string, string>} parameters
 */
function linkTo(parameters) {
  const query = new URLSearchParams(given(parameters)).toString()
  return query === '' ? '/developer' : `/developer?${query}`
}

/**
 * @param {string} webhookId
 * @param {string} [tab] the overview where none is named
 */
export const webhookLink = (webhookId, tab = '') => linkTo({ webhook: webhookId, tab })

/**
 * @param {string} webhookId
 * @param {Record<string, string>} [filter]
 */
export const deliveriesLink = (webhookId, filter = {}) =>
  linkTo({ webhook: webhookId, tab: 'deliveries', ...filter })

/**
 * @param {string} webhookId
 * @param {string} deliveryId
 */
export const deliveryLink = (webhookId, deliveryId) => linkTo({ webhook: webhookId, delivery: deliveryId })

/**
 * @param {Place} view
 * @param {Record<string, string>} [parameters]
 */
export const placeLink = (view, parameters = {}) => linkTo({ view, ...parameters })

/**
 * Returns a parameter of the page's address; empty without it.
 * @param {string} name
 */
export const addressed = (name) => new URLSearchParams(location.search).get(name) ?? ''

/**
 * Keeps a parameter of the view that is shown in its address, without a new entry in the history.
 * @param {string} name
 * @param {string} value
 */
export function keepInAddress(name, value) {
  history.replaceState(history.state, '', addressWith({ [name]: value }))
}

/**
 * The address of the page with other parameters, in their order; without those that are empty.
 * @param {Record<string, string>} changes
 */
export function addressWith(changes) {
  const url = new URL(location.href)
  for (const [name, value] of Object.entries(changes)) {
    url.searchParams.delete(name)
    if (value !== '') url.searchParams.set(name, value)
  }
  return url
}

/**
 * Returns the address of the delivery's workflow in the Temporal UI; null when that is not configured.
 * @param {Session} session
 * @param {string} deliveryId
 */
export function workflowLink({ temporalUi }, deliveryId) {
  if (temporalUi === null) return null
  const { url, namespace } = temporalUi
  return `${url}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(`delivery/${deliveryId}`)}`
}
