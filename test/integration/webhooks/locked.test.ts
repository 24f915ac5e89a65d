import { expect } from 'chai'
import type { QueryRunner } from 'typeorm'
import { lockWebhook } from '../../../src/db/queries/webhooks.ts'
import { newId } from '../../../src/ids.ts'
import { useApi } from '../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { openTransaction } from '../../helpers/database/database.ts'

const COMMANDS: readonly [method: string, below: string, body?: object][] = [
  ['PATCH', '', { enabled: false }],
  ['DELETE', ''],
  ['POST', '/discard-failed'],
  ['POST', '/discard', { deliveryIds: [newId()] }],
  ['POST', `/deliveries/${newId()}/discard`],
  ['POST', `/deliveries/${newId()}/retry`],
]

describe('while the lock of an id is held by another transaction', () => {
  const suite = useApi()
  let stranger: TestMember
  let holder: QueryRunner
  let foreignId: string
  const unknownId = newId()

  before(async () => {
    const { dataSource } = suite.database
    const owner = await createMember(dataSource)
    stranger = await createMember(dataSource)
    foreignId = (
      await createWebhookRow(dataSource, {
        organisationId: owner.organisationId,
        url: 'https://a.example.com/hook',
      })
    ).id
    holder = await openTransaction(dataSource)
    for (const id of [foreignId, unknownId]) await lockWebhook(holder.manager, id)
  })
  after(async () => {
    await holder.rollbackTransaction()
    await holder.release()
  })

  for (const [method, below, body] of COMMANDS) {
    it(`answers ${method} /webhooks/:id${below.replace(/[0-9a-f-]{36}/, ':deliveryId')} with 404 for a webhook of another organisation and for an unknown one`, async () => {
      for (const id of [foreignId, foreignId.toUpperCase(), unknownId]) {
        const path = `/api/orgs/${stranger.organisationId}/webhooks/${id}${below}`
        const { status, text } = await suite.api.call(method, path, { apiKey: stranger.apiKey, body })
        expect(status, text).to.equal(404)
      }
    })
  }
})
