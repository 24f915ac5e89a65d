import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { FirstAttemptMode } from '../../src/deliveries/dispatch/dispatcher.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'

/** Deadline of a POST, the lease of its row 5 s after that, and a pause that outlasts both and the heartbeat. */
const ATTEMPT_TIMEOUT_MS = 3_000
const PAUSE_MS = 14_000
const ANSWERED_AFTER_MS = 100

const SETTLED_WITHIN_MS = 40_000

describe('a process that is paused during its POST', () => {
  let resume: () => void

  beforeEach(() => {
    resume = () => undefined
  })
  // Before the stage is closed: a process that is stopped does not end.
  afterEach(() => resume())
  const stage = useStage()

  /** Stops the process while its first POST of all is in progress, and confirms that and every other one. */
  function pauseAtFirst(posthorn: PosthornProcess): void {
    stage.answerWith(async (index) => {
      if (index > 0) return 200
      process.kill(posthorn.pid, 'SIGSTOP')
      resume = () => {
        process.kill(posthorn.pid, 'SIGCONT')
        resume = () => undefined
      }
      await delay(ANSWERED_AFTER_MS)
      return 200
    })
  }
  /** Lets the paused process go on when its deadline, its lease and its heartbeat have passed. */
  async function pass(): Promise<void> {
    await eventually(() => expect(stage.receiver.posts).not.to.have.length(0))
    await delay(PAUSE_MS)
    resume()
  }
  const attemptsOf = async (deliveryId: string): Promise<string[]> => {
    const found = await stage.dataSource.query<{ number: number; outcome: string }[]>(
      'SELECT number, outcome FROM attempt WHERE delivery_id = $1 ORDER BY number',
      [deliveryId],
    )
    return found.map(({ number, outcome }) => `${number} ${outcome}`)
  }

  for (const mode of ['workflow', 'direct'] satisfies FirstAttemptMode[]) {
    it(`records the confirmation that arrived meanwhile, in \`${mode}\`: one attempt, at most two POSTs, no incident`, async () => {
      const env = { ATTEMPT_TIMEOUT_MS: String(ATTEMPT_TIMEOUT_MS), FIRST_ATTEMPT: mode }
      const posthorn = await stage.start({ env })
      pauseAtFirst(posthorn)
      const deliveryId = await stage.publish(posthorn)
      await pass()
      await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, SETTLED_WITHIN_MS)
      expect(await attemptsOf(deliveryId)).to.deep.equal(['1 succeeded'])
      expect(stage.receiver.postsOf(deliveryId).length).to.be.within(1, 2)
      expect(await stage.dataSource.query('SELECT id FROM incident')).to.deep.equal([])
    })
  }
})
