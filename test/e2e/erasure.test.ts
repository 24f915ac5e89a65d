import { expect } from 'chai'
import { asOperator, secretOf } from '../helpers/api/operator.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { useTemporalClient } from '../helpers/runner/servers.ts'

const ENV = { POSTHORN_OPERATOR_KEYS: `manager:${secretOf('manager')}:manage` }
const BACKLOG = 3_000

describe('the erasure of an organisation, on a real Temporal server', () => {
  const stage = useStage()
  const client = useTemporalClient()
  const start = () => stage.start({ env: ENV })
  const call = (posthorn: PosthornProcess, method: string) =>
    posthorn.call(method, `/api/operator/organisations/${stage.member.organisationId}`, asOperator('manager'))

  it('survives kill -9, ends the workflows, and leaves no row, no further POST and no secret', async () => {
    const { organisationId } = stage.member
    stage.answerWith(() => 500)
    const first = await start()
    const deliveryId = await stage.publish(first)
    // Eight seconds to the next.
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 4 })
    await writeBacklog(stage.dataSource, {
      organisationId,
      webhookId: stage.webhookId,
      state: 'failed',
      count: BACKLOG,
    })
    const begun = await call(first, 'DELETE')
    expect([begun.status, (begun.json as { state: string }).state]).to.deep.equal([202, 'erasing'])
    const posts = stage.receiver.posts.length
    await first.kill()
    const log = first.log()

    const second = await start()
    await eventually(async () => expect((await call(second, 'GET')).status).to.equal(404), 120_000)
    const left = await stage.dataSource.query<object[]>(
      `SELECT (SELECT count(*)::int FROM organisation) AS organisations, (SELECT count(*)::int FROM event) AS events,
              (SELECT count(*)::int FROM delivery) AS deliveries, (SELECT count(*)::int FROM attempt) AS attempts,
              (SELECT count(*)::int FROM webhook) AS webhooks, (SELECT count(*)::int FROM incident) AS incidents,
              (SELECT count(*)::int FROM member) AS members, (SELECT count(*)::int FROM api_key) AS keys,
              (SELECT count(*)::int FROM audit_entry) AS audit`,
    )
    expect(new Set(Object.values(left[0]!))).to.deep.equal(new Set([0]))
    expect(stage.receiver.posts).to.have.length(posts)

    const delivery = await client.workflow.getHandle(`delivery/${deliveryId}`).describe()
    // It ends by itself where it wakes before it is terminated.
    expect(delivery.status.name).to.be.oneOf(['TERMINATED', 'COMPLETED'])
    const erasure = client.workflow.getHandle(`erasure/${organisationId}`)
    await erasure.result()
    const history = JSON.stringify(await erasure.fetchHistory())
    for (const text of [history, log, second.log()]) {
      expect(text).to.not.include(secretOf('manager'))
      expect(text).to.not.include(stage.member.apiKey)
    }
    expect(second.log()).to.include('organisation.erased')
    expect(log).to.include('organisation.erasure_requested')
  })
})
