import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createWebhookOwner, type WebhookOwner } from '../helpers/processes/webhook-owner.ts'

/** A pause that a process notices, and that outlasts the deadline of its POST. */
const PAUSE_MS = 3_200
const ATTEMPT_TIMEOUT_MS = 2_000

/** After so many runs without a record the attempt is recorded as failed. */
const MAX_RUNS = 5

/** Each run may have to wait until the lease of the one before is over. */
const RECORDED_WITHIN_MS = 90_000

describe('a process that is paused in every POST', () => {
  let posthorn: PosthornProcess
  let owner: WebhookOwner
  let isPausing: boolean

  beforeEach(() => {
    isPausing = true
  })
  // Before the stage is closed: a process that is stopped does not end.
  afterEach(async () => {
    isPausing = false
    process.kill(posthorn.pid, 'SIGCONT')
    await owner.close()
  })
  const stage = useStage()

  it(`has every run of an attempt counted, and after ${MAX_RUNS} of them \`worker_lost\` recorded`, async () => {
    const env = { FIRST_ATTEMPT: 'direct', ATTEMPT_TIMEOUT_MS: String(ATTEMPT_TIMEOUT_MS) }
    posthorn = await stage.start({ env })
    owner = await createWebhookOwner(stage.dataSource, posthorn, async () => {
      if (!isPausing || owner.receiver.posts.length > MAX_RUNS) return 200
      process.kill(posthorn.pid, 'SIGSTOP')
      await delay(PAUSE_MS)
      process.kill(posthorn.pid, 'SIGCONT')
      return null
    })
    const deliveryId = await owner.publish()
    const runs = () => owner.receiver.posts.length
    const attempts = () =>
      stage.dataSource.query<object[]>(
        'SELECT number, outcome, failure_code FROM attempt WHERE delivery_id = $1 ORDER BY number',
        [deliveryId],
      )
    await eventually(
      async () => expect(runs() > MAX_RUNS || (await attempts()).length > 0).to.equal(true),
      RECORDED_WITHIN_MS,
    )
    expect(runs()).to.equal(MAX_RUNS)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 2 })
    expect((await attempts())[0]).to.deep.equal({
      number: 1,
      outcome: 'failed',
      failure_code: 'worker_lost',
    })
    expect(runs()).to.equal(MAX_RUNS + 1)
  })
})
