import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { closeResolvedIncident, openIncident, resumeIncident } from '../../../src/db/queries/incidents.ts'
import { findEvaluationInputs, findIncident } from '../../../src/db/queries/notifications.ts'
import { recordAttempts } from '../../../src/deliveries/attempt/record-under-lock.ts'
import { recordSuccesses } from '../../../src/deliveries/protocol/record-attempts.ts'
import { newId } from '../../../src/ids.ts'
import { evaluateNotifications } from '../../../src/incidents/evaluate-notifications.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { attemptRecord } from '../../helpers/deliveries/use-rows.ts'
import {
  createConcurrentWebhook,
  type ConcurrentWebhook,
} from '../../helpers/incidents/concurrent-webhook.ts'
import { openTransaction, useDatabase } from '../../helpers/database/database.ts'

describe('what closes an incident', () => {
  const database = useDatabase()
  let api: TestApi
  let webhook: ConcurrentWebhook

  before(async () => {
    api = await createTestApi(database.dataSource, {
      incidentWorkflows: { signal: (incident) => Promise.resolve(void webhook.signalled.push(incident)) },
    })
  })
  after(() => api.close())
  beforeEach(async () => {
    webhook = await createConcurrentWebhook(database.dataSource)
  })

  async function request(method: string, path: string, body?: unknown): Promise<unknown> {
    const { organisationId, apiKey } = webhook.member
    const url = `/api/orgs/${organisationId}/webhooks/${webhook.webhookId}${path}`
    const { status, json, text } = await api.call(method, url, { apiKey, body })
    expect(status, text).to.be.within(200, 299)
    return json
  }
  const make = (ids: readonly string[], number: number, succeeds: boolean) =>
    webhook.attempt(ids.map((deliveryId) => ({ deliveryId, number, succeeds })))
  const switchOffAndOn = async (): Promise<void> => {
    for (const enabled of [false, true]) await request('PATCH', '', { enabled })
  }
  const incidents = async (): Promise<boolean[]> => (await webhook.incidents()).map(({ open }) => open)

  it('a success is never dated after the closing, however long the transaction had waited before', async () => {
    const [deliveryId = ''] = await webhook.publishFailing(1)
    const { organisationId } = webhook.member
    const record = attemptRecord(
      { organisationId, deliveryId, url: 'https://receiver.example.com/' },
      { owner: randomUUID(), number: 2 },
    )
    await database.dataSource.transaction(async (manager) => {
      await manager.query('SELECT pg_sleep(0.05)')
      await recordSuccesses(manager, [record], null)
      await closeResolvedIncident(manager, {
        organisationId: webhook.member.organisationId,
        webhookId: webhook.webhookId,
      })
    })
    const [closed] = await database.dataSource.query<{ afterMs: number }[]>(
      `SELECT (extract(epoch FROM i.closed_at - d.completed_at) * 1000)::float8 AS "afterMs"
         FROM delivery d JOIN incident i ON i.webhook_id = d.webhook_id WHERE d.id = $1`,
      [deliveryId],
    )
    expect(closed!.afterMs).to.be.at.least(0)
  })

  it('an incident that is opened after it begins after it, and is exhausted and resumed no sooner', async () => {
    const ids = (): { id: string; organisationId: string; webhookId: string } => {
      const { webhookId, member } = webhook
      return { id: newId(), organisationId: member.organisationId, webhookId }
    }
    const second = ids()
    // Its transaction begins first, as one that waits for the lock of the webhook.
    const waiting = await openTransaction(database.dataSource)
    try {
      await openIncident(database.dataSource.manager, ids())
      await closeResolvedIncident(database.dataSource.manager, {
        organisationId: webhook.member.organisationId,
        webhookId: webhook.webhookId,
      })
      await openIncident(waiting.manager, second, true)
      await resumeIncident(waiting.manager, {
        organisationId: webhook.member.organisationId,
        webhookId: webhook.webhookId,
      })
      await waiting.commitTransaction()
    } finally {
      await waiting.release()
    }
    const [found] = await database.dataSource.query<Record<'opened' | 'exhausted' | 'resumed', number>[]>(
      `SELECT (extract(epoch FROM i.opened_at - before.closed_at) * 1000)::float8 AS opened,
              (extract(epoch FROM i.exhausted_at - i.opened_at) * 1000)::float8 AS exhausted,
              (extract(epoch FROM i.resumed_at - i.opened_at) * 1000)::float8 AS resumed
         FROM incident i JOIN incident before ON before.webhook_id = i.webhook_id AND before.id <> i.id
        WHERE i.id = $1`,
      [second.id],
    )
    for (const [what, ms] of Object.entries(found!)) expect(ms, what).to.be.at.least(0)
  })

  describe('narrowing the subscription does not', () => {
    const streak = async () => {
      const { organisationId } = webhook.member
      const [{ id } = { id: '' }] = await webhook.incidents()
      const incident = await findIncident(database.dataSource, organisationId, id)
      return (await findEvaluationInputs(database.dataSource, incident!)).streak
    }
    const narrow = async (): Promise<void> => {
      await webhook.publishFailing(2)
      expect(await streak()).not.to.equal(null)
      await request('PATCH', '', { subscribedEventKeys: ['invoice:paid'] })
      expect(await webhook.states()).to.deep.equal({ stopped: 2 })
    }

    it('but what is left fails no more', async () => {
      await narrow()
      expect(await incidents()).to.deep.equal([true])
      expect(await streak()).to.equal(null)
    })

    it('and what fails a week later has failed since then', async () => {
      await narrow()
      for (const age of ['attempt SET started_at = started_at', 'incident SET opened_at = opened_at'])
        await database.dataSource.query(`UPDATE ${age} - interval '7 days' WHERE webhook_id = $1`, [
          webhook.webhookId,
        ])
      const { organisationId } = webhook.member
      const [{ id: incidentId } = { id: '' }] = await webhook.incidents()
      const evaluation = await evaluateNotifications(
        { dataSource: database.dataSource, locks: createWebhookLocks() },
        { organisationId, incidentId, notifyAfterMs: 300_000, dueFor: null },
      )
      expect(evaluation).to.include({ open: true, streak: null })
      await request('PATCH', '', { subscribedEventKeys: ['*'] })
      await webhook.publishFailing(1)
      expect(await incidents()).to.deep.equal([true])
      expect((await streak())!.forMs).to.be.below(60_000)
    })
  })

  it('a failed first attempt at an erased payload does not, though nothing is unresolved; a later one does', async () => {
    const [later = ''] = await webhook.publishFailing(1)
    await switchOffAndOn()
    const [first = ''] = await webhook.publish(1)
    const { organisationId } = webhook.member
    const { webhookId } = webhook
    for (const [deliveryId, number] of [
      [first, 1],
      [later, 2],
    ] as const) {
      const owner = randomUUID()
      await setRow(database.dataSource, deliveryId, { state: 'in_progress', attempts: number - 1, owner })
      await database.dataSource.query('UPDATE delivery SET is_erased = true WHERE id = $1', [deliveryId])
      const record = attemptRecord(
        { organisationId, deliveryId, url: 'https://receiver.example.com/' },
        { owner, number, failureCode: 'http_status', statusCode: 500 },
      )
      await database.dataSource.transaction((manager) =>
        recordAttempts(
          manager,
          { organisationId, webhookId },
          [{ ...record, next: 'waiting', dueInMs: 1_000 }],
          null,
        ),
      )
      expect(await incidents(), `after attempt ${number}`).to.deep.equal([number === 1])
    }
  })

  it('a first attempt that succeeds does, once nothing is unresolved', async () => {
    await webhook.publishFailing(2)
    await make(await webhook.publish(1), 1, true)
    expect(await incidents(), 'while two deliveries wait').to.deep.equal([true])
    await switchOffAndOn()
    expect(await incidents()).to.deep.equal([true])
    webhook.signalled.length = 0
    await make(await webhook.publish(1), 1, true)
    expect(await incidents()).to.deep.equal([false])
    expect(webhook.signalled).to.have.length(1)
  })

  it('a first attempt that succeeds does so in the transaction that completes its delivery', async () => {
    await webhook.publishFailing(1)
    await switchOffAndOn()
    const [deliveryId] = await webhook.publish(1)
    await make([deliveryId!], 1, true)
    const written = await database.dataSource.query<object[]>(
      `SELECT xmin::text FROM delivery WHERE id = $1 UNION SELECT xmin::text FROM incident WHERE webhook_id = $2`,
      [deliveryId, webhook.webhookId],
    )
    expect(await incidents()).to.deep.equal([false])
    expect(written).to.have.length(1)
  })

  it('a success that was recorded before does not, when another run finds it', async () => {
    const [delivery] = await webhook.publishFailing(1)
    await webhook.publishFailing(1)
    await make([delivery!], 2, true)
    await switchOffAndOn()
    await make([delivery!], 2, true)
    expect(await incidents()).to.deep.equal([true])
  })
})
