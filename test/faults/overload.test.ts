import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { ApiResponse } from '../helpers/api/api.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'

const LIMIT = 30

describe('a backlog at its limit', () => {
  const stage = useStage()

  function publish(posthorn: PosthornProcess, idempotencyKey?: string): Promise<ApiResponse> {
    return posthorn.call('POST', `/api/orgs/${stage.member.organisationId}/events`, {
      apiKey: stage.member.apiKey,
      body: { event: 'customer:created', data: { id: 'cus_1' } },
      ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
    })
  }

  it('causes refusals with Retry-After until deliveries are made', async () => {
    const env = { PUBLISH_BACKLOG_LIMIT: String(LIMIT) }
    // Without a worker nothing is attempted.
    const api = await stage.start({ command: 'api', env })
    const key = randomUUID()
    const first = await publish(api, key)
    expect(first.status, first.text).to.equal(202)
    let accepted = 1
    // What is committed while deliveries are counted is counted twice, until they are counted again.
    await eventually(async () => {
      if ((await publish(api)).status === 202) accepted++
      expect(accepted).to.equal(LIMIT)
    })
    const refused = await publish(api)
    expect(refused.status, refused.text).to.equal(503)
    expect(refused.json).to.include({ code: 'overloaded' })
    expect(Number(refused.headers.get('retry-after'))).to.be.at.least(1)

    const repeat = await publish(api, key)
    expect(repeat.status, repeat.text).to.equal(202)
    expect(repeat.json).to.deep.equal(first.json)

    await stage.start({ command: 'worker', env })
    await eventually(async () => {
      expect((await publish(api)).status).to.equal(202)
      accepted++
    })
    await eventually(() => expect(stage.receiver.posts).to.have.length(accepted))
  })
})
