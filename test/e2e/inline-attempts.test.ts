import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import { deliveryWorkflowId } from '../../src/temporal/delivery-workflows.ts'
import { createNeighbour, postsByDelivery, publishBurst } from '../helpers/processes/burst.ts'
import { eventually } from '../helpers/eventually.ts'
import { percentile } from '../helpers/percentile.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { testServers } from '../helpers/runner/servers.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const BURST = 300

/** The backlog of the hanging endpoint, and the delay that it may cause to a healthy one on a busy machine. */
const BACKLOG = 150
const LEAVE_MS = 150

for (const mode of ['overflow', 'direct'] as const) {
  describe(`inline first attempts, with a real Temporal server, in \`${mode}\``, () => {
    let stage: Stage
    let posthorn: PosthornProcess
    let temporal: Client

    before(async () => {
      const { temporalAddress } = testServers()
      temporal = new Client({ connection: await Connection.connect({ address: temporalAddress }) })
      stage = await createStage()
      posthorn = await stage.start({ env: { FIRST_ATTEMPT: mode } })
    })
    after(async () => {
      await temporal.connection.close()
      await stage.close()
    })
    beforeEach(() => {
      stage.answerWith(() => 200)
      stage.receiver.posts.length = 0
    })

    const count = async (ids: readonly string[], condition: string): Promise<number> => {
      const [row] = await stage.dataSource.query<{ count: number }[]>(
        `SELECT count(*)::int AS count FROM delivery WHERE id = ANY($1::uuid[]) AND ${condition}`,
        [ids],
      )
      return row!.count
    }
    /** How many of these deliveries have a workflow. */
    async function workflowsOf(deliveries: readonly string[]): Promise<number> {
      const query = `OrganisationId = '${stage.member.organisationId}' AND WorkflowType = 'deliverEvent'`
      const found = new Set<string>()
      for await (const { workflowId } of temporal.workflow.list({ query })) found.add(workflowId)
      return deliveries.filter((id) => found.has(deliveryWorkflowId(id))).length
    }
    async function deliverBurst(): Promise<string[]> {
      const deliveries = await publishBurst(stage, posthorn, BURST)
      await eventually(async () =>
        expect(await count(deliveries, `state = 'completed' AND attempts = 1`)).to.equal(BURST),
      )
      expectOnce(deliveries)
      return deliveries
    }
    function expectOnce(deliveries: readonly string[]): void {
      const posts = postsByDelivery(stage)
      for (const deliveryId of deliveries) expect(posts.get(deliveryId), deliveryId).to.equal(1)
    }
    /** From publish to arrival of thirty events, one every 30 ms. */
    async function paced(): Promise<number[]> {
      const delays: number[] = []
      for (let index = 0; index < 30; index++) {
        const next = delay(30)
        const publishedAt = Date.now()
        const deliveryId = await stage.publish(posthorn)
        delays.push((await eventually(() => stage.receiver.postsOf(deliveryId)[0]!.arrivedAt)) - publishedAt)
        await next
      }
      return delays
    }

    if (mode === 'overflow') {
      it('serve a burst before Temporal could, and start a workflow for every delivery afterwards', async () => {
        const deliveries = await deliverBurst()
        const arrivals = stage.receiver.posts.map((post) => post.arrivedAt)
        const [firstAt, lastAt] = [Math.min(...arrivals), Math.max(...arrivals)]
        // Most workflows are still to come.
        expect(await count(deliveries, 'workflow_started_at IS NULL')).to.be.above(BURST / 3)
        await eventually(async () =>
          expect(await count(deliveries, 'workflow_started_at IS NOT NULL AND sweep_at IS NULL')).to.equal(
            BURST,
          ),
        )
        // Temporal takes longer for workflows that have nothing to do than the receiver had to wait for all its POSTs.
        expect(lastAt - firstAt).to.be.below(Date.now() - lastAt)
        await eventually(async () => expect(await workflowsOf(deliveries)).to.equal(BURST))
        expectOnce(deliveries)
      })
    }

    if (mode === 'direct') {
      it('deliver everything once, without any workflow', async () => {
        const deliveries = await deliverBurst()
        expect(await count(deliveries, 'workflow_started_at IS NULL AND sweep_at IS NULL')).to.equal(BURST)
        expect(await workflowsOf(deliveries)).to.equal(0)
      })

      it('leave retries to a workflow, on time and with the same bytes', async () => {
        stage.answerWith((index) => (index < 2 ? 503 : 200))
        const deliveryId = await stage.publish(posthorn)
        await stage.reaches(deliveryId, { state: 'completed', attempts: 3 })
        const posts = stage.receiver.postsOf(deliveryId)
        expect(posts).to.have.length(3)
        const sent = posts.map(
          ({ body, headers }) => `${body.toString()} ${String(headers['x-webhook-signature'])}`,
        )
        expect(new Set(sent).size).to.equal(1)
        const gaps = posts.slice(1).map((post, index) => post.arrivedAt - posts[index]!.answeredAt)
        expect(gaps[0]).to.be.at.least(1_000)
        expect(gaps[1]).to.be.at.least(2_000)
        expect(await temporal.workflow.getHandle(deliveryWorkflowId(deliveryId)).result()).to.deep.equal({
          state: 'completed',
          attempts: 3,
        })
      })

      it('do not delay a healthy endpoint while another hangs with a backlog', async () => {
        const alone = await paced()
        const hanging = await createNeighbour(stage, posthorn, () => null)
        await hanging.publishAtOnce(BACKLOG)
        const loaded = await paced()
        expect(percentile(loaded, 0.9)).to.be.below(3 * percentile(alone, 0.9) + LEAVE_MS)
        expect(hanging.receiver.posts.length).to.be.within(1, BACKLOG)
        await hanging.close()
      })
    }
  })
}
