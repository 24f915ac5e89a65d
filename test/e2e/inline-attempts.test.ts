import { expect } from 'chai'
import { SLOW_POST_MS } from '../../src/domain/attempt-outcome.ts'
import { deliveryWorkflowId } from '../../src/temporal/workflows.ts'
import { postsByDelivery, publishBurst } from '../helpers/processes/burst.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'
import { useTemporalClient } from '../helpers/runner/servers.ts'

const BURST = 300

/** Where the machine makes the endpoint slow, workflows make ten attempts in a second or fewer. */
const BURST_LIMIT_MS = 180_000

for (const mode of ['overflow', 'direct'] as const) {
  describe(`inline first attempts, with a real Temporal server, in \`${mode}\``, () => {
    let stage: Stage
    let posthorn: PosthornProcess
    const temporal = useTemporalClient()

    before(async () => {
      stage = await createStage()
      posthorn = await stage.start({ env: { FIRST_ATTEMPT: mode, METRICS_PORT: '0' } })
    })
    after(() => stage.close())
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
    /** Those that are not completed with their first attempt, with what became of them. */
    const unfinished = (ids: readonly string[]): Promise<object[]> =>
      stage.dataSource.query(
        `SELECT d.state, d.attempts, d.runs, d.workflow_started_at IS NOT NULL AS "hasWorkflow",
                array_agg(a.failure_code) AS failures, max(a.duration_ms) AS slowest
           FROM unnest($1::uuid[]) AS id LEFT JOIN delivery d USING (id) LEFT JOIN attempt a ON a.delivery_id = id
          WHERE (d.state = 'completed' AND d.attempts = 1) IS NOT TRUE GROUP BY d.id`,
        [ids],
      )
    /** How many of these deliveries have a workflow. */
    async function workflowsOf(deliveries: readonly string[]): Promise<number> {
      const query = `OrganisationId = '${stage.member.organisationId}' AND WorkflowType = 'deliverEvent'`
      const found = new Set<string>()
      for await (const { workflowId } of temporal.workflow.list({ query })) found.add(workflowId)
      return deliveries.filter((id) => found.has(deliveryWorkflowId(id))).length
    }
    async function deliverBurst(): Promise<string[]> {
      const deliveries = await publishBurst(stage, posthorn, BURST)
      await eventually(async () => expect(await unfinished(deliveries)).to.deep.equal([]), BURST_LIMIT_MS)
      expectOnce(deliveries)
      return deliveries
    }
    /** Whether an endpoint was slow, or a claim given back: workflows make the attempts then. */
    async function isDisturbed(): Promise<boolean> {
      const slow = await stage.dataSource.query<unknown[]>('SELECT 1 FROM attempt WHERE duration_ms >= $1', [
        SLOW_POST_MS,
      ])
      const metrics = await (await posthorn.scrape()).text()
      return (
        slow.length > 0 || !metrics.includes('posthorn_dispatched_deliveries_total{result="released"} 0\n')
      )
    }
    function expectOnce(deliveries: readonly string[]): void {
      const posts = postsByDelivery(stage)
      for (const deliveryId of deliveries) expect(posts.get(deliveryId), deliveryId).to.equal(1)
    }
    if (mode === 'overflow') {
      it('serve a burst before Temporal could, and start a workflow for every delivery afterwards', async () => {
        const deliveries = await deliverBurst()
        // Workflows are still to come.
        expect(await count(deliveries, 'workflow_started_at IS NULL')).to.be.above(0)
        await eventually(async () =>
          expect(await count(deliveries, 'workflow_started_at IS NOT NULL AND sweep_at IS NULL')).to.equal(
            BURST,
          ),
        )
        await eventually(async () => expect(await workflowsOf(deliveries)).to.equal(BURST))
        expectOnce(deliveries)
      })
    }

    if (mode === 'direct') {
      it('deliver everything once, without any workflow unless the machine made a POST slow or a claim old', async () => {
        const deliveries = await deliverBurst()
        const withoutWorkflow = await count(deliveries, 'workflow_started_at IS NULL AND sweep_at IS NULL')
        expect(withoutWorkflow).to.be.at.least((await isDisturbed()) ? BURST / 2 : BURST)
        await eventually(async () =>
          expect(await workflowsOf(deliveries)).to.equal(
            await count(deliveries, 'workflow_started_at IS NOT NULL'),
          ),
        )
      })
    }
  })
}
