import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import { freePort } from '../../src/free-port.ts'
import { incidentWorkflowId } from '../../src/temporal/workflows.ts'
import { RETENTION_SCHEDULE_ID } from '../../src/temporal/retention-schedule.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { eventually } from '../helpers/eventually.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'
import { startWipeableTemporal, type WipeableTemporal } from '../helpers/temporal/wipeable-temporal.ts'

/** What is promised for new events, and for how late waiting deliveries may be. */
const RECOVERY_MS = 30_000

/** For a machine under other load. */
const TOLERANCE_MS = 10_000

type Played = { stage: Stage; posthorn: PosthornProcess }

describe("the loss of all of Temporal's data", () => {
  let temporal: WipeableTemporal
  let stages: Played[] = []

  before(async () => {
    temporal = await startWipeableTemporal()
    for (const FIRST_ATTEMPT of ['workflow', 'overflow']) {
      const stage = await createStage({ temporalAddress: temporal.address })
      const env = { FIRST_ATTEMPT, WEBHOOK_CONCURRENCY: '2', POSTHORN_NOTIFY_AFTER_SECONDS: '600' }
      stages.push({ stage, posthorn: await stage.start({ env }) })
    }
  })
  after(async () => {
    for (const { stage } of stages) await stage.close()
    stages = []
    await temporal.close()
  })

  const onBoth = <T>(work: (of: Played, index: number) => Promise<T>): Promise<T[]> =>
    Promise.all(stages.map(work))
  const readiness = async ({ posthorn }: Played) => (await posthorn.call('GET', '/readyz')).json

  /** A delivery that fails until `recover` is called, on a webhook that answers all others, slowly. */
  async function startFailing({ stage, posthorn }: Played) {
    let failingId: string | null = null
    stage.answerWith((_index, post, response) => {
      const isFailing = failingId === null || post.headers['x-webhook-event-id'] === failingId
      setTimeout(() => response.writeHead(isFailing ? 500 : 200).end(), isFailing ? 0 : 500)
      return null
    })
    const deliveryId = await stage.publish(posthorn)
    await eventually(() => expect(stage.receiver.postsOf(deliveryId)).to.have.length(1))
    failingId = deliveryId
    return { deliveryId, recover: () => stage.answerWith(() => 200) }
  }

  async function startRetryJob({ stage, posthorn }: Played) {
    const { webhookId, member } = stage
    const { organisationId, apiKey } = member
    await writeBacklog(stage.dataSource, { organisationId, webhookId, state: 'failed', count: 40 })
    const path = `/api/orgs/${organisationId}/webhooks/retry-deliveries`
    const answer = await posthorn.call('POST', path, { apiKey, body: { mode: 'failed' } })
    expect(answer.status, answer.text).to.equal(202)
    const { id } = answer.json as { id: string }
    return async () =>
      (await posthorn.call('GET', `${path}/${id}`, { apiKey })).json as { state: string; done: number }
  }

  /** Opens an incident on a second webhook, whose endpoint refuses every connection; returns its workflow's id. */
  async function openIncident({ stage, posthorn }: Played): Promise<string> {
    const { organisationId } = stage.member
    const url = `http://127.0.0.1:${await freePort()}/`
    const { id: webhookId } = await createWebhookRow(stage.dataSource, {
      organisationId,
      url,
      subscribedEventKeys: ['comment:created'],
    })
    await stage.publish(posthorn, { event: 'comment:created', webhookId })
    return eventually(async () => {
      const [row] = await stage.dataSource.query<{ id: string }[]>(
        'SELECT id FROM incident WHERE webhook_id = $1',
        [webhookId],
      )
      return incidentWorkflowId(webhookId, row!.id)
    })
  }

  it('goes on within thirty seconds with new and waiting deliveries, incidents, retry jobs and retention', async () => {
    const incidents = await onBoth(openIncident)
    const failing = await onBoth(startFailing)
    const jobs = await onBoth(startRetryJob)
    await Promise.all(jobs.map((job) => eventually(async () => expect((await job()).done).to.be.above(0))))
    await onBoth(({ stage }, index) =>
      eventually(
        // Its retries queue behind the retries of the job.
        () => expect(stage.receiver.postsOf(failing[index]!.deliveryId)).to.have.length.above(2),
        60_000,
      ),
    )

    await temporal.stop()
    for (const { recover } of failing) recover()
    await onBoth((played) =>
      eventually(async () =>
        expect(await readiness(played)).to.deep.equal({ database: 'up', engine: 'down' }),
      ),
    )
    // While one waited for its third attempt, the other may have come to a wait of minutes.
    await onBoth(({ stage }, index) =>
      stage.dataSource.query(
        `UPDATE delivery SET next_attempt_at = least(next_attempt_at, delivery_now() + interval '8 s'),
                sweep_at = least(sweep_at, delivery_now() + interval '23 s')
          WHERE id = $1 AND state = 'waiting'`,
        [failing[index]!.deliveryId],
      ),
    )
    const publish = ({ stage, posthorn }: Played) => stage.publish(posthorn)
    const meanwhile = await onBoth(publish)
    await temporal.wipe()
    const backAt = Date.now()
    const fresh = await onBoth(publish)
    const reaches = ({ stage }: Played, deliveryId: string) =>
      eventually(async () => {
        const [row] = await stage.dataSource.query<{ state: string }[]>(
          'SELECT state FROM delivery WHERE id = $1',
          [deliveryId],
        )
        expect(row!.state).to.equal('completed')
      }, RECOVERY_MS + TOLERANCE_MS)
    await onBoth(async (played, index) => {
      for (const deliveryId of [meanwhile[index]!, fresh[index]!]) await reaches(played, deliveryId)
      await reaches(played, failing[index]!.deliveryId)
    })
    expect(Date.now() - backAt).to.be.below(RECOVERY_MS + TOLERANCE_MS)

    const client = new Client({ connection: await Connection.connect({ address: temporal.address }) })
    for (const id of incidents)
      await eventually(async () => {
        expect((await client.workflow.getHandle(id).describe()).status.name).to.equal('RUNNING')
      }, RECOVERY_MS)
    expect((await client.schedule.getHandle(RETENTION_SCHEDULE_ID).describe()).state.paused).to.equal(false)
    await client.connection.close()
    for (const job of jobs)
      await eventually(async () => expect(await job()).to.include({ state: 'done', done: 40 }), 60_000)
    await onBoth(async (played) =>
      expect(await readiness(played)).to.deep.equal({ database: 'up', engine: 'up' }),
    )
  })
})
