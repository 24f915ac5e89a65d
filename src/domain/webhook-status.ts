export const WEBHOOK_STATUSES = ['failing', 'degraded', 'healthy', 'disabled', 'unattempted'] as const

/** Publishing to more would keep the database from other organisations. */
export const MAX_WEBHOOKS_PER_ORGANISATION = 1_000

/** How an endpoint stands; the rule is that of {@link webhookStatus}. */
export type WebhookStatus = (typeof WEBHOOK_STATUSES)[number]

/** What operators list webhooks by. A webhook may be in several of these lists. */
export const OPERATOR_STATES = ['failing', 'degraded', 'paused', 'disabled'] as const

export type OperatorState = (typeof OPERATOR_STATES)[number]

/** What the status of a webhook follows from. */
export type StatusInputs = {
  enabled: boolean
  hasOpenIncident: boolean
  /** Null before the first attempt. */
  latestOutcome: 'succeeded' | 'failed' | null
  /** Of the last hour, since the incident opened; of no account without one. */
  sinceOpened: { attempts: number; succeeded: number }
}

/** An endpoint to which fewer attempts succeed is no better than one that is dead. */
const MIN_SUCCESS_RATE = 0.1

/**
 * Returns the status of a webhook. `degraded`: an incident is open, but the latest attempt succeeded, or at least one in
 * ten attempts of the last hour since it opened; or none is open and the latest attempt failed. `failing`: any other
 * open incident.
 */
export function webhookStatus({
  enabled,
  hasOpenIncident,
  latestOutcome,
  sinceOpened,
}: StatusInputs): WebhookStatus {
  const { attempts, succeeded } = sinceOpened
  if (hasOpenIncident) {
    const isPartial = succeeded > 0 && succeeded >= attempts * MIN_SUCCESS_RATE
    return latestOutcome === 'succeeded' || isPartial ? 'degraded' : 'failing'
  }
  if (!enabled) return 'disabled'
  if (latestOutcome === null) return 'unattempted'
  return latestOutcome === 'failed' ? 'degraded' : 'healthy'
}
