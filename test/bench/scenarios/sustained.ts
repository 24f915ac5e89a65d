import { deliver } from '../load.ts'
import { columns, rounded } from '../measure/distribution.ts'
import { residentMib } from '../measure/processes.ts'
import type { Row, Scenario } from '../scenario.ts'
import { HOOK } from '../stage.ts'

const PACE = { kind: 'open', perSecond: 150 } as const
const MINUTES = 10
const QUICK_EVENTS = 100

/** A steady pace for ten minutes, a row for each: whether anything grows. */
export const sustained: Scenario = {
  letter: 'n',
  name: 'sustained',
  title: 'ten minutes at 150 events a second, minute by minute',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [HOOK] })
    const rows: Row[] = []
    const problems: string[] = []
    const events = bench.quick ? QUICK_EVENTS : PACE.perSecond * 60
    for (let minute = 1; minute <= (bench.quick ? 2 : MINUTES); minute++) {
      bench.say(`minute ${minute}`)
      const { waits, lost, doubled, problems: broken } = await deliver(stage, HOOK, { events, pace: PACE })
      const [marked] = await stage.dataSource.query<[{ count: number }]>(
        `SELECT count(*)::int AS count FROM delivery WHERE completed_at IS NOT NULL AND sweep_at IS NOT NULL`,
      )
      const memoryMib = residentMib(...stage.pids)
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
