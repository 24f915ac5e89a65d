/**
 * An event key: an entity and what happened to it, two or more words between colons, such as `invoice:paid`. A word
 * begins with a letter and goes on with letters, digits, `-` and `_`.
 */
export const EVENT_KEY_PATTERN = '^[A-Za-z][A-Za-z0-9_-]*(:[A-Za-z][A-Za-z0-9_-]*)+$'
export const MAX_EVENT_KEY_LENGTH = 100

/** A permission: an entity and what may be done with it, such as `invoice:read`. */
export const PERMISSION_PATTERN = '^[A-Za-z][A-Za-z0-9_-]*:[A-Za-z][A-Za-z0-9_-]*$'
