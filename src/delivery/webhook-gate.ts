/**
 * Bounds the attempts under way per webhook in this process, so that a receiver that hangs holds only its own share
 * of the slots. Nobody waits inside: who finds the gate full is told when to come again.
 */
export type WebhookGate = {
  /** A pass, to be given back when the attempt is over; or null and the time after which to try again. */
  enter(webhookId: string, deliveryId: string): { leave: () => void } | { comeBackAfterMs: number }
}

type Lane = { underWay: number; turnedAway: Set<string>; typicalMs: number }

/** What an attempt is taken to last until one has been seen. */
const ASSUMED_MS = 1_000

/** Weight of the newest attempt in what is typical: the last few count. */
const NEWEST_SHARE = 0.2

const SHORTEST_RETURN_MS = 500
const LONGEST_RETURN_MS = 60_000

/** `capacity` attempts per webhook at once. The more were turned away before, the later a delivery comes again. */
export function createWebhookGate(capacity: number): WebhookGate {
  const lanes = new Map<string, Lane>()

  return {
    enter(webhookId, deliveryId) {
      const lane = lanes.get(webhookId) ?? { underWay: 0, turnedAway: new Set(), typicalMs: ASSUMED_MS }
      lanes.set(webhookId, lane)
      if (lane.underWay >= capacity) {
        lane.turnedAway.add(deliveryId)
        // Each full round before this delivery takes about as long as an attempt does.
        const rounds = Math.ceil(lane.turnedAway.size / capacity)
        return {
          comeBackAfterMs: Math.min(LONGEST_RETURN_MS, Math.max(SHORTEST_RETURN_MS, rounds * lane.typicalMs)),
        }
      }
      lane.turnedAway.delete(deliveryId)
      lane.underWay++
      const enteredAt = performance.now()
      return {
        leave() {
          lane.underWay--
          lane.typicalMs += NEWEST_SHARE * (performance.now() - enteredAt - lane.typicalMs)
          if (lane.underWay === 0 && lane.turnedAway.size === 0) lanes.delete(webhookId)
        },
      }
    },
  }
}
