/**
 * What a retry job covers: permanently `failed` deliveries; those and the waiting ones (`force`); or those that were
 * `stopped` with their webhook or subscription.
 */
export const RETRY_MODES = ['failed', 'force', 'stopped'] as const

export type RetryMode = (typeof RETRY_MODES)[number]
