/** @import { App, Session } from '../types.d.ts' */

export const MANAGE = 'webhook:manage'
export const READ = 'webhook:read'
export const WILDCARD = '*'

/**
 * Returns whether the member has it. The API checks again; this only hides actions that it would refuse.
 * @param {Session} session
 * @param {string} permission
 */
export function may({ member }, permission) {
  return member.fullAccess || member.permissions.includes(permission)
}

/**
 * What the member lacks to change a webhook or see its secret: the right to manage, and to every key.
 * @param {Pick<App, 'session' | 'eventKeys'>} app
 * @param {readonly string[]} subscribedEventKeys
 * @returns {string[]}
 */
export function lackingToManage({ session, eventKeys }, subscribedEventKeys) {
  const permissions = new Map(eventKeys.map(({ key, permission }) => [key, permission]))
  // `*`, and keys that the catalogue lacks.
  const needed = [MANAGE, ...subscribedEventKeys.map((key) => permissions.get(key) ?? 'full access')]
  return [...new Set(needed)].filter((permission) => !may(session, permission))
}
