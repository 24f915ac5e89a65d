import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { createReceiver } from '../helpers/receivers/receiver.ts'
import { runRetryJob } from '../helpers/processes/burst.ts'
import { useServedStage, useStage } from '../helpers/processes/stage.ts'

describe('retry-deliveries, on a real Temporal server', () => {
  const stage = useServedStage()

  it('force: attempts every waiting and failed delivery exactly once, and reports its progress', async () => {
    const { organisationId } = stage.member
    const failed = await writeBacklog(stage.dataSource, {
      organisationId,
      webhookId: stage.webhookId,
      state: 'failed',
      count: 20,
    })
    const waiting = await writeBacklog(stage.dataSource, {
      organisationId,
      webhookId: stage.webhookId,
      state: 'waiting',
      count: 20,
    })
    const { total, progress } = await runRetryJob(stage, stage.posthorn, { mode: 'force' })
    expect(total).to.equal(40)
    expect(progress).to.deep.equal([...progress].sort((a, b) => a - b))
    for (const id of [...failed, ...waiting]) expect(stage.receiver.postsOf(id), id).to.have.length(1)
    const states = await stage.dataSource.query<{ state: string; count: number }[]>(
      'SELECT state, count(*)::int AS count FROM delivery WHERE organisation_id = $1 GROUP BY state',
      [organisationId],
    )
    expect(states).to.deep.equal([{ state: 'completed', count: 40 }])
  })
})

describe('retry-deliveries while an endpoint hangs, on a real Temporal server', () => {
  const stage = useStage()

  it('delays neither a job nor retries of another webhook while one hangs with a backlog', async () => {
    const { organisationId } = stage.member
    stage.answerWith(() => null)
    await writeBacklog(stage.dataSource, {
      organisationId,
      webhookId: stage.webhookId,
      state: 'waiting',
      count: 300,
    })
    const healthy = await createReceiver({ answer: (index) => (index < 2 ? 500 : 200) })
    const healthyHook = await createWebhookRow(stage.dataSource, {
      organisationId,
      url: healthy.url,
      subscribedEventKeys: ['invoice:deleted'],
    })
    const posthorn = await stage.start({ env: { ATTEMPT_TIMEOUT_MS: '30000' } })
    await posthorn.call('POST', `/api/orgs/${organisationId}/webhooks/retry-deliveries`, {
      apiKey: stage.member.apiKey,
      body: { mode: 'force', id: stage.webhookId },
    })
    const deliveryId = await stage.publish(posthorn, { event: 'invoice:deleted', webhookId: healthyHook.id })
    await stage.reaches(deliveryId, { state: 'completed', attempts: 3 }, 60_000)
    const posts = healthy.postsOf(deliveryId)
    const lateness = [1_000, 2_000].map(
      (wait, index) => posts[index + 1]!.arrivedAt - posts[index]!.answeredAt - wait,
    )
    // A claim may come as much before its time.
    expect(Math.min(...lateness)).to.be.at.least(-3)
    // Less than the thirty seconds for which each of the others holds its slot.
    expect(Math.max(...lateness)).to.be.below(25_000)
    await posthorn.kill()
    await healthy.close()
  })
})
