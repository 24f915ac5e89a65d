import type { PlayRecord } from '../record.ts'
import type { Violation } from '../violation.ts'

const RULE = 'nothing is sent to a webhook that is off'

/** A POST that was decided on before the switch-off arrives within that time, in ms. */
const SENT_WITHIN_MS = 4_000

/** No POST arrives after a switch-off was answered and before the switch-on, but from a process that was paused. */
export function checkSwitchedOff({ actions, posts, faults }: PlayRecord): Violation[] {
  const violations: Violation[] = []
  const switches = actions.filter(({ kind }) => kind === 'switch_off' || kind === 'switch_on')
  for (const off of switches.filter(({ kind, status }) => kind === 'switch_off' && status === 200)) {
    const on = switches.find(
      ({ kind, webhookId, to }) => kind === 'switch_on' && webhookId === off.webhookId && to >= off.from,
    )
    const until = on?.from ?? Infinity
    for (const { id, deliveryId, webhookId, arrivedAt } of posts) {
      if (webhookId !== off.webhookId || arrivedAt <= off.to + SENT_WITHIN_MS || arrivedAt >= until) continue
      const wasPaused = faults.some(
        ({ kind, from, to }) => kind === 'pause' && from <= arrivedAt && to >= off.to - SENT_WITHIN_MS,
      )
      if (!wasPaused)
        violations.push({ rule: RULE, deliveryId, detail: `post ${id} came after the switch-off` })
    }
  }
  return violations
}
