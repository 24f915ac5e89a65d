/** Which events a replay sends: those that the webhook has no delivery of (`missing`), or these and the others (`all`). */
export const REPLAY_INCLUDES = ['missing', 'all'] as const

/** The events of a replay. `until` is exclusive; `eventKeys` null: every key that the webhook is subscribed to. */
export type ReplayRange = {
  since: Date
  until: Date
  eventKeys: string[] | null
  include: (typeof REPLAY_INCLUDES)[number]
}
