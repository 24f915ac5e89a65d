import { setTimeout as delay } from 'node:timers/promises'
import { BURST } from '../load.ts'
import { deliveryUpdates } from '../measure/database-usage.ts'
import { rounded } from '../measure/distribution.ts'
import { residentMib } from '../measure/processes.ts'
import type { Scenario } from '../scenario.ts'

const HANGING = { path: '/hang/backlog', eventKey: 'comment:updated' }
const BACKLOGS = [300, 3_000]
const QUICK_BACKLOGS = [50]
const MEASURED_MS = 40_000
const QUICK_MS = 5_000

/** Deliveries of one endpoint that never answers wait for their first attempt: what that costs the database. */
export const backlog: Scenario = {
  letter: 'k',
  name: 'backlog',
  title: 'row updates a second for the backlog of one endpoint that hangs',
  async run(bench) {
    const rows = []
    for (const events of bench.quick ? QUICK_BACKLOGS : BACKLOGS) {
      const stage = await bench.openStage({ webhooks: [HANGING] })
      bench.say(`${events} events for the endpoint that hangs`)
      await stage.publish(HANGING.eventKey, { pace: BURST, limit: { events } })
      const [before, postsBefore] = [await deliveryUpdates(stage.databaseUrl), await posts()]
      const measuredMs = bench.quick ? QUICK_MS : MEASURED_MS
      const startedAt = performance.now()
      await delay(measuredMs)
      const [after, postsAfter] = [await deliveryUpdates(stage.databaseUrl), await posts()]
      const seconds = (performance.now() - startedAt) / 1_000
      rows.push({
        backlog: events,
        updatesPerSecond: rounded((after - before) / seconds),
        postsPerSecond: rounded((postsAfter - postsBefore) / seconds),
        memoryMib: residentMib(...stage.pids),
      })
      await stage.takeArrivals()
      await stage.close()
    }
    return { rows, problems: [] }

    async function posts(): Promise<number> {
      return (await bench.receiver.counts())[HANGING.path]?.posts ?? 0
    }
  },
}
