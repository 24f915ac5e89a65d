import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import { postsByDelivery, publishBurst } from '../helpers/processes/burst.ts'
import { eventually } from '../helpers/eventually.ts'
import type { FirstAttemptMode } from '../../src/deliveries/dispatch/dispatcher.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const BURST = 3_000

/** How much of the rate in `direct` a burst in `overflow` has to reach; some of it goes to Temporal first. */
const SHARE = 0.6

/** Temporal starts some 50 workflows a second on an idle machine, and a fraction of that under other load. */
const FOLLOWED_WITHIN_MS = 600_000

describe(`a burst of ${BURST} events`, function () {
  this.timeout(900_000)

  /** Publishes the burst, and returns how many deliveries arrived per second. */
  async function serve(
    stage: Stage,
    mode: FirstAttemptMode,
  ): Promise<{ deliveries: string[]; rate: number }> {
    const posthorn = await stage.start({ env: { FIRST_ATTEMPT: mode } })
    // Connections, compiled code and prepared statements, as in a process that has worked for a while.
    await publishBurst(stage, posthorn, 200)
    await arrived(stage, 200)
    const startedAt = Date.now()
    const deliveries = await publishBurst(stage, posthorn, BURST)
    await arrived(stage, 200 + BURST)
    const lastAt = stage.receiver.posts.reduce((last, { arrivedAt }) => Math.max(last, arrivedAt), 0)
    const posts = postsByDelivery(stage)
    for (const deliveryId of deliveries) expect(posts.get(deliveryId), deliveryId).to.equal(1)
    return { deliveries, rate: (BURST * 1_000) / (lastAt - startedAt) }
  }
  const arrived = (stage: Stage, count: number) =>
    eventually(() => expect(stage.receiver.posts).to.have.length(count), 120_000)

  it('reaches its receiver in `overflow` at the rate of `direct`, and has a workflow for every delivery afterwards', async function () {
    const direct = await createStage()
    const { rate: directRate } = await serve(direct, 'direct')
    await direct.close()

    const stage = await createStage()
    const { rate } = await serve(stage, 'overflow')
    this.test!.title += ` (${Math.round(rate)}/s of ${Math.round(directRate)}/s)`
    expect(rate).to.be.above(SHARE * directRate)

    const { temporalAddress } = testServers()
    const connection = await Connection.connect({ address: temporalAddress })
    const query = `OrganisationId = '${stage.member.organisationId}' AND WorkflowType = 'deliverEvent'`
    await eventually(async () => {
      const { count } = await new Client({ connection }).workflow.count(query)
      expect(count).to.equal(200 + BURST)
    }, FOLLOWED_WITHIN_MS)
    await connection.close()
    const [{ left } = { left: -1 }] = await stage.dataSource.query<{ left: number }[]>(
      `SELECT count(*)::int AS left FROM delivery WHERE state <> 'completed' OR attempts <> 1 OR workflow_started_at IS NULL`,
    )
    expect(left).to.equal(0)
    expect(stage.receiver.posts).to.have.length(200 + BURST)
    await stage.close()
  })
})
