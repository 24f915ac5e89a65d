import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'

const EVENTS = 150
/** Longer than the SDK lets one step of a workflow take. */
const ASLEEP_MS = 6_000

describe('a worker that falls asleep while it runs workflows', () => {
  const stage = useStage()

  it('lives on, and delivers everything', async () => {
    const api = await stage.start({ command: 'api', env: { FIRST_ATTEMPT: 'workflow' } })
    const worker = await stage.start({ command: 'worker', env: { FIRST_ATTEMPT: 'workflow' } })
    const completed = async (): Promise<number> => {
      const [row] = await stage.dataSource.query<{ count: number }[]>(
        `SELECT count(*)::int AS count FROM delivery WHERE state = 'completed'`,
      )
      return row!.count
    }
    for (let event = 0; event < EVENTS; event++) await stage.publish(api)
    for (let times = 0; times < 3; times++) {
      const before = await completed()
      await eventually(async () => expect(await completed()).to.be.above(before))
      process.kill(worker.pid, 'SIGSTOP')
      await delay(ASLEEP_MS)
      process.kill(worker.pid, 'SIGCONT')
    }
    await eventually(async () => expect(await completed()).to.equal(EVENTS), 90_000)
    expect(worker.log()).not.to.include('has become corrupted')
  }).timeout(180_000)
})
