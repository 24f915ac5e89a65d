/**
 * What a retry job covers: permanently `failed` deliveries; those and the waiting ones (`force`); those that were
 * `stopped` with their webhook or subscription; or all of these and the discarded ones (`undelivered`).
 */
export const RETRY_MODES = ['failed', 'force', 'stopped', 'undelivered'] as const

export type RetryMode = (typeof RETRY_MODES)[number]
