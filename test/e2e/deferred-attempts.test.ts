import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import { deliveryWorkflowId } from '../../src/temporal/delivery-workflows.ts'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createDeferredAnswers } from '../helpers/receivers/receiver.ts'
import { testServers } from '../helpers/runner/servers.ts'

/** A claim may be so much too early on the database's clock, and the two clocks are read in whole milliseconds. */
const TOLERANCE_MS = 5

describe('an attempt that is deferred, on a real Temporal server', () => {
  const stage = useStage()
  let temporal: Client

  before(async () => {
    const { temporalAddress } = testServers()
    temporal = new Client({ connection: await Connection.connect({ address: temporalAddress }) })
  })
  after(() => temporal.connection.close())

  it('is never made early, however often its workflow is signalled to stop', async () => {
    const posthorn = await stage.start({ env: { FIRST_ATTEMPT: 'workflow', WEBHOOK_CONCURRENCY: '1' } })
    stage.answerWith(() => 500)
    const deliveryId = await stage.publish(posthorn)
    const posts = () => stage.receiver.postsOf(deliveryId)
    // Eight seconds before the fifth attempt.
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 4 })
    const [row] = await stage.dataSource.query<{ next_attempt_at: Date }[]>(
      'SELECT next_attempt_at FROM delivery WHERE id = $1',
      [deliveryId],
    )
    const handle = temporal.workflow.getHandle(deliveryWorkflowId(deliveryId))
    const activities = async (): Promise<number> => {
      const { events } = await handle.fetchHistory()
      return (events ?? []).filter((event) => event.activityTaskCompletedEventAttributes).length
    }
    /** Signals the workflow, and returns when it has requested its attempt. */
    const stop = async (): Promise<void> => {
      const before = await activities()
      await handle.signal('stop')
      await eventually(async () => expect(await activities()).to.be.above(before))
    }

    // Another delivery takes the only slot.
    const answers = createDeferredAnswers()
    stage.answerWith(answers.answer)
    const other = await stage.publish(posthorn)
    await eventually(() => expect(answers.pending()).to.equal(1))
    await stop()
    answers.release(200)
    await stage.reaches(other, { state: 'completed', attempts: 1 })
    await stop()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 5 })
    expect(posts()).to.have.length(5)
    expect(posts()[4]!.arrivedAt - row!.next_attempt_at.getTime()).to.be.at.least(-TOLERANCE_MS)
  })
})
