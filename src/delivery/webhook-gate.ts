/**
 * Bounds the attempts under way per webhook in this process, so that a receiver that hangs holds only its own share
 * of the slots. Nobody waits inside: who finds the gate full is told when to come again.
 */
export type WebhookGate = {
  /** A pass, to be given back when its POST is over, again does no harm; or the time after which to try again. */
  enter(webhookId: string, deliveryId: string): { leave: () => void } | { comeBackAfterMs: number }
}

/** `turnedAway`: deliveries that are to come again, with the time (`performance.now()`) after which they have gone elsewhere. */
type Lane = { underWay: number; turnedAway: Map<string, number>; typicalMs: number }

/** What an attempt is taken to last until one has been seen. */
const ASSUMED_MS = 1_000

/** Weight of the newest attempt in what is typical: the last few count. */
const NEWEST_SHARE = 0.2

const SHORTEST_RETURN_MS = 500
const LONGEST_RETURN_MS = 15 * 60_000

/** A delivery that is this late for its return went to another worker, or came to its end. */
const FORGET_AFTER_MS = 60_000

/** `capacity` attempts per webhook at once. The more were turned away before, the later a delivery comes again. */
export function createWebhookGate(capacity: number): WebhookGate {
  const lanes = new Map<string, Lane>()

  return {
    enter(webhookId, deliveryId) {
      const lane = lanes.get(webhookId) ?? {
        underWay: 0,
        turnedAway: new Map<string, number>(),
        typicalMs: ASSUMED_MS,
      }
      lanes.set(webhookId, lane)
      if (lane.underWay >= capacity) {
        const now = performance.now()
        forgetLost(lane, now)
        // Each full round before this delivery takes about as long as an attempt does.
        const before = lane.turnedAway.size + (lane.turnedAway.has(deliveryId) ? 0 : 1)
        const roundsMs = Math.ceil(before / capacity) * lane.typicalMs
        const comeBackAfterMs = Math.min(LONGEST_RETURN_MS, Math.max(SHORTEST_RETURN_MS, roundsMs))
        lane.turnedAway.delete(deliveryId)
        lane.turnedAway.set(deliveryId, now + comeBackAfterMs + FORGET_AFTER_MS)
        return { comeBackAfterMs }
      }
      lane.turnedAway.delete(deliveryId)
      lane.underWay++
      const enteredAt = performance.now()
      let hasLeft = false
      return {
        leave() {
          if (hasLeft) return
          hasLeft = true
          lane.underWay--
          lane.typicalMs += NEWEST_SHARE * (performance.now() - enteredAt - lane.typicalMs)
          forgetLost(lane, performance.now())
          if (lane.underWay === 0 && lane.turnedAway.size === 0) lanes.delete(webhookId)
        },
      }
    },
  }
}

/** In the order in which they were turned away, so that a look at the first ones is enough. */
function forgetLost(lane: Lane, now: number): void {
  for (const [deliveryId, forgetAtMs] of lane.turnedAway) {
    if (forgetAtMs > now) return
    lane.turnedAway.delete(deliveryId)
  }
}
