import { columns, rounded } from '../measure/distribution.ts'
import { firstPosts, settlePublished } from '../measure/ledger.ts'
import { residentMib } from '../measure/memory.ts'
import type { Row, Scenario } from '../scenario.ts'

const EVENT_KEY = 'customer:created'
const PATH = '/ok/hook'
const PER_SECOND = 150
const MINUTES = 10
const QUICK_EVENTS = 100

/** A steady pace for ten minutes, a row for each: whether anything grows. */
export const sustained: Scenario = {
  letter: 'n',
  name: 'sustained',
  title: 'ten minutes at 150 events a second, minute by minute',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [{ path: PATH, eventKey: EVENT_KEY }] })
    const rows: Row[] = []
    const problems: string[] = []
    const events = bench.quick ? QUICK_EVENTS : PER_SECOND * 60
    for (let minute = 1; minute <= (bench.quick ? 2 : MINUTES); minute++) {
      bench.say(`minute ${minute}`)
      const published = await stage.publish(EVENT_KEY, {
        pace: { kind: 'open', perSecond: PER_SECOND },
        limit: { events },
      })
      await stage.arrived(PATH, { deliveries: events })
      const arrivals = await stage.takeArrivals()
      const { lost, doubled, problems: broken } = settlePublished(published, arrivals)
      const waits = firstPosts(published, arrivals).map(
        ({ event, arrival }) => arrival.arrivedAt - event.intendedAt,
      )
      const [marked] = await stage.dataSource.query<[{ count: number }]>(
        `SELECT count(*)::int AS count FROM delivery WHERE completed_at IS NOT NULL AND sweep_at IS NOT NULL`,
      )
      const memoryMib = stage.pids.reduce((sum, pid) => sum + residentMib(pid), 0)
      rows.push({ minute, ...columns(waits), workflowsOwed: marked.count, memoryMib, lost, doubled })
      problems.push(...broken)
    }
    await stage.close()
    const [first, last] = [rows[0], rows.at(-1)]
    bench.say(
      `memory ${rounded(Number(last?.['memoryMib']) / Number(first?.['memoryMib']))} times the first minute's`,
    )
    return { rows, problems }
  },
}
