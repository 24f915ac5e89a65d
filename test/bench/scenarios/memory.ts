import { setTimeout as delay } from 'node:timers/promises'
import { BURST } from '../load.ts'
import { burstFigures } from '../measure/ledger.ts'
import { residentMib } from '../measure/processes.ts'
import type { Row, Scenario } from '../scenario.ts'
import { HOOK } from '../stage.ts'

/** As in the image. */
const ENV = { MALLOC_ARENA_MAX: '2' }
const ROUNDS = 3
const EVENTS = 20_000
const BODY_BYTES = 20 * 1_024
const QUICK_EVENTS = 100
const REST_MS = 60_000
const QUICK_REST_MS = 1_000
const POLL_MS = 250

/** Resident memory in MiB of a process: a minute after its start, at most in a burst, and a minute after that. */
export const memory: Scenario = {
  letter: 'r',
  name: 'memory',
  title: 'resident memory of a process, idle, in a burst of large bodies, and a minute later',
  async run(bench) {
    const rows: Row[] = []
    const problems: string[] = []
    const restMs = bench.quick ? QUICK_REST_MS : REST_MS
    const events = bench.quick ? QUICK_EVENTS : EVENTS
    for (let round = 1; round <= (bench.quick ? 1 : ROUNDS); round++) {
      const stage = await bench.openStage({ webhooks: [HOOK], env: ENV, isWarmedUp: false })
      const nowMib = (): number => residentMib(...stage.pids)
      await delay(restMs)
      const idleMib = nowMib()
      bench.say(`${events} events of ${BODY_BYTES / 1_024} KB`)
      let mostMib = 0
      const watch = setInterval(() => (mostMib = Math.max(mostMib, nowMib())), POLL_MS).unref()
      const published = await stage.publish(HOOK.eventKey, {
        bodyBytes: BODY_BYTES,
        pace: BURST,
        limit: { events },
      })
      await stage.arrived(HOOK.path, { deliveries: events })
      clearInterval(watch)
      await delay(restMs)
      const { problems: broken } = burstFigures(published, await stage.takeArrivals())
      problems.push(...broken)
      rows.push({ round, idleMib, mostMib, minuteLaterMib: nowMib() })
      await stage.close()
    }
    return { rows, problems }
  },
}
