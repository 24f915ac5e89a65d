import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

for (const mode of ['workflow', 'direct'] as const) {
  describe(`a test event, with first attempts in \`${mode}\``, () => {
    let stage: Stage
    let posthorn: PosthornProcess

    before(async () => {
      stage = await createStage()
      posthorn = await stage.start({ env: { FIRST_ATTEMPT: mode } })
    })
    after(() => stage.close())

    const call = async (method: string, path: string) =>
      posthorn.call(method, `/api/orgs/${stage.member.organisationId}/webhooks${path}`, {
        apiKey: stage.member.apiKey,
      })
    async function sendTest(): Promise<string> {
      const { status, json, text } = await call('POST', `/${stage.webhookId}/test`)
      expect(status, text).to.equal(202)
      return (json as { deliveryId: string }).deliveryId
    }

    it('makes one attempt, ends stopped, opens no incident and is not counted when it fails', async () => {
      stage.answerWith(() => 500)
      const deliveryId = await sendTest()
      await stage.reaches(deliveryId, { state: 'stopped', attempts: 1 })
      expect((await call('GET', `/${stage.webhookId}/incidents`)).json).to.deep.equal({
        data: [],
        nextCursor: null,
      })
      expect((await call('GET', '/delivery-stats')).json).to.deep.equal({
        data: [
          {
            webhookId: stage.webhookId,
            waitingForFirstAttempt: 0,
            oldestWaitingForFirstAttemptMs: null,
            waitingForRetry: 0,
            permanentlyFailed: 0,
            stopped: 0,
            latestAttempt: null,
          },
        ],
      })
      const retried = await call('POST', `/${stage.webhookId}/deliveries/${deliveryId}/retry`)
      expect(retried.status).to.equal(409)
      expect(retried.json).to.include({ code: 'test_delivery' })
      // An ordinary delivery has had its second attempt long before this has had any.
      const ordinary = await stage.publish(posthorn)
      await eventually(() => expect(stage.receiver.postsOf(ordinary)).to.have.length(2))
      expect(stage.receiver.postsOf(deliveryId)).to.have.length(1)
    })

    it('closes no incident when it succeeds', async () => {
      stage.answerWith(() => 200)
      await stage.dataSource.query('TRUNCATE delivery CASCADE')
      await stage.reaches(await sendTest(), { state: 'completed', attempts: 1 })
      const { json } = await call('GET', `/${stage.webhookId}/incidents`)
      const { data } = json as { data: { closedAt: string | null }[] }
      expect(data.map(({ closedAt }) => closedAt)).to.deep.equal([null])
      const ordinary = await stage.publish(posthorn)
      await stage.reaches(ordinary, { state: 'completed', attempts: 1 })
      await eventually(async () => {
        const after = (await call('GET', `/${stage.webhookId}/incidents`)).json as {
          data: { closedAt: string | null }[]
        }
        expect(after.data[0]!.closedAt).not.to.equal(null)
      })
    })
  })
}
