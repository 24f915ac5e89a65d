import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'

const PAUSES = 3
const EVENTS_PER_PAUSE = 50
/** Longer than the SDK's default limit of one step. */
const PAUSED_MS = 6_000

/** The promise is 30 s, on a machine without other work. */
const AT_MOST_MS = 60_000

describe('a worker that is paused while it runs workflows', () => {
  const stage = useStage()

  it("continues after a pause in the middle of a workflow's step", async () => {
    const env = { FIRST_ATTEMPT: 'workflow' }
    const api = await stage.start({ command: 'api', env })
    const worker = await stage.start({ command: 'worker', env })
    for (let pause = 0; pause < PAUSES; pause++) {
      const before = stage.receiver.posts.length
      const publishing = Promise.all(Array.from({ length: EVENTS_PER_PAUSE }, () => stage.publish(api)))
      await eventually(() => expect(stage.receiver.posts.length).to.be.above(before))
      process.kill(worker.pid, 'SIGSTOP')
      await delay(PAUSED_MS)
      process.kill(worker.pid, 'SIGCONT')
      await publishing
    }
    await eventually(async () => expect(await stage.uncompleted()).to.equal(0), AT_MOST_MS)
    expect(new Set(stage.receiver.posts.map(({ headers }) => headers['x-webhook-event-id'])).size).to.equal(
      PAUSES * EVENTS_PER_PAUSE,
    )
    expect(worker.log()).not.to.include('has become corrupted')
  }).timeout(180_000)
})
