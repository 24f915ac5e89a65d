/** @import { Session } from '../types.d.ts' */

export const MANAGE = 'webhook:manage'
export const WILDCARD = '*'

/**
 * Whether the member holds it. The API asks again; this is only so that nobody is offered what it would refuse.
 * @param {Session} session
 * @param {string} permission
 */
export function may({ member }, permission) {
  return member.fullAccess || member.permissions.includes(permission)
}

/**
 * What the member lacks to change a webhook or see its secret: the right to manage, and to every key.
 * @param {Session} session
 * @param {readonly string[]} eventKeys
 * @returns {string[]}
 */
export function lackingToManage(session, eventKeys) {
  const needed = [MANAGE, ...eventKeys.map(permissionFor)]
  return [...new Set(needed)].filter((permission) => !may(session, permission))
}

/** @param {string} eventKey */
function permissionFor(eventKey) {
  return eventKey === WILDCARD ? 'full access' : `${eventKey.split(':')[0] ?? ''}:read`
}
