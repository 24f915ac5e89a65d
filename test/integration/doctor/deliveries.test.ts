import { expect } from 'chai'
import { countBacklog } from '../../../src/db/queries/backlog.ts'
import { RETENTION_SCHEDULE_ID } from '../../../src/temporal/retention-schedule.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { examine, settingsOf } from '../../helpers/doctor/doctored.ts'

describe('posthorn doctor examines deliveries', () => {
  const database = useDatabase()
  let organisationId: string
  let webhookId: string

  beforeEach(async () => {
    await database.dataSource.query('TRUNCATE organisation, webhook, event, delivery CASCADE')
    organisationId = (await createMember(database.dataSource)).organisationId
    const webhook = await createWebhookRow(database.dataSource, {
      organisationId,
      url: 'https://receiver.example.com/',
    })
    webhookId = webhook.id
  })

  const change = (fields: string) => database.dataSource.query(`UPDATE delivery SET ${fields}`)
  const waiting = (count: number) =>
    writeBacklog(database.dataSource, { organisationId, webhookId, state: 'waiting', count })

  it('finds no problem in deliveries that wait for their time or are in progress', async () => {
    await waiting(3)
    await publishRow(database.dataSource, organisationId)
    const { problems, find } = await examine(settingsOf(database.url))
    expect(problems).to.deep.equal([])
    expect(find('deliveries.backlog').seen).to.equal('no delivery is stuck')
  })

  it('names deliveries that no process has started, and their age', async () => {
    await publishRow(database.dataSource, organisationId)
    await change(`created_at = now() - interval '20 minutes', sweep_at = now() - interval '19 minutes'`)
    const { problems, find } = await examine(settingsOf(database.url))
    expect(problems).to.deep.equal(['error deliveries.overdue', 'error deliveries.unstarted'])
    expect(find('deliveries.overdue').seen).to.match(
      /^overdue: 0 by up to five minutes, 1 by up to an hour, 0 by more than an hour; the oldest since 20\d\d-/,
    )
    expect(find('deliveries.unstarted').seen).to.match(/^1 delivery\(s\), .* such as [0-9a-f-]{36}$/)
  })

  it('names attempts that were lost with their worker', async () => {
    const ids = await waiting(1)
    await setRow(database.dataSource, ids, { state: 'in_progress', attempts: 7, leaseMs: -90_000 })
    await change(`next_attempt_at = now() - interval '2 minutes'`)
    const { problems } = await examine(settingsOf(database.url))
    expect(problems).to.include.members(['error deliveries.overdue', 'error deliveries.attempt_lost'])
  })

  it('names overdue deliveries that no sweeper recovers, and those whose workflow is gone', async () => {
    const [id] = await waiting(1)
    await change(`next_attempt_at = now() - interval '2 hours', sweep_at = now() - interval '2 hours'`)
    const { problems, find } = await examine(settingsOf(database.url))
    expect(problems).to.deep.equal([
      'error deliveries.overdue',
      'error deliveries.unswept',
      'error deliveries.workflow_gone',
    ])
    expect(find('deliveries.overdue').seen).to.include('1 by more than an hour')
    expect(find('deliveries.workflow_gone').seen).to.include(id)
  })

  describe('whose endpoint hangs', () => {
    const HELD = `endpoints that hang or are slow hold 3 first attempts`

    /** Three first attempts that were published 20 minutes ago, and one more delivery, which is waiting. */
    async function hold(): Promise<string> {
      for (let count = 0; count < 3; count++) await publishRow(database.dataSource, organisationId)
      await change(`created_at = now() - interval '20 minutes', sweep_at = now() - interval '19 minutes'`)
      const [id] = await waiting(1)
      return id!
    }

    async function expectHeld(): Promise<void> {
      const { problems, find } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal([])
      expect(find('deliveries.endpoints').seen).to.match(new RegExp(`^${HELD}, the oldest since 20\\d\\d-`))
      expect(find('deliveries.endpoints').level).to.equal('ok')
      expect((await countBacklog(database.dataSource)).overdue).to.deep.equal({ busy: 3, idle: 0 })
    }

    /** An attempt of eleven seconds. */
    const attempted = (deliveryId: string, fields: { endedAgo: string; durationMs: number }) =>
      database.dataSource.query(
        `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, failure_code)
         VALUES ($1, 7, $2, 'schedule', 'https://receiver.example.com/', now() - $3::interval - $4 * interval '1 ms',
                 $4, 'failed', 'timeout')`,
        [deliveryId, webhookId, fields.endedAgo, fields.durationMs],
      )

    it('are no problem while an attempt to it is in progress', async () => {
      const underWay = { state: 'in_progress', attempts: 7, leaseMs: 9_000, sweepInMs: 30_000 } as const
      await setRow(database.dataSource, await hold(), underWay)
      await expectHeld()
    })

    it('are no problem between two attempts to it', async () => {
      await attempted(await hold(), { endedAgo: '50 seconds', durationMs: 11_000 })
      await expectHeld()
    })

    it('are a problem once nothing was posted to it for five minutes', async () => {
      await attempted(await hold(), { endedAgo: '5 minutes', durationMs: 11_000 })
      const { problems, find } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal(['error deliveries.overdue', 'error deliveries.unstarted'])
      expect(find('deliveries.endpoints').seen).to.equal(
        'no delivery waits for an endpoint that hangs or is slow',
      )
    })

    it('are a problem where the endpoint answers at once', async () => {
      await attempted(await hold(), { endedAgo: '5 seconds', durationMs: 20 })
      const { problems } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal(['error deliveries.overdue', 'error deliveries.unstarted'])
    })

    it('hides no delivery of another webhook', async () => {
      await attempted(await hold(), { endedAgo: '50 seconds', durationMs: 11_000 })
      const other = await createWebhookRow(database.dataSource, {
        organisationId,
        url: 'https://b.example.com/',
      })
      const [id] = await writeBacklog(database.dataSource, {
        ...{ organisationId, webhookId: other.id, state: 'waiting', count: 1 },
      })
      await database.dataSource.query(
        `UPDATE delivery SET next_attempt_at = now() - interval '3 minutes', sweep_at = now() - interval '3 minutes'
          WHERE id = $1`,
        [id],
      )
      const { problems, find } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal([
        'error deliveries.overdue',
        'error deliveries.unswept',
        'error deliveries.workflow_gone',
      ])
      expect(find('deliveries.unswept').seen).to.match(/^1 delivery\(s\)/)
      expect(find('deliveries.endpoints').seen).to.include(HELD)
    })
  })

  it('names overdue deliveries that are paused in Temporal, and accuses nothing else of them', async () => {
    const [id] = await waiting(1)
    await change(
      `next_attempt_at = now() - interval '2 hours', sweep_at = now() + interval '5 minutes', paused_since = '2026-05-04T09:02:11.204Z'`,
    )
    const { problems, find } = await examine(settingsOf(database.url))
    expect(problems).to.deep.equal(['warning deliveries.paused'])
    const { seen, cure } = find('deliveries.paused')
    expect(seen).to.include(
      '1 overdue delivery(s) are paused in Temporal, the first since 2026-05-04T09:02:11.204Z',
    )
    expect(seen).to.include(id)
    expect(cure).to.include('temporal workflow unpause')
  })

  it('names deliveries that ended an hour ago and are still owed a workflow', async () => {
    for (const state of ['completed', 'stopped'] as const) {
      const [delivery] = await publishRow(database.dataSource, organisationId)
      const owed = { state, attempts: 1, workflow: false, sweepInMs: -1_000 }
      await setRow(database.dataSource, delivery!.deliveryId, owed)
    }
    for (const [age, expected, code] of [
      ['59 minutes', [], 'deliveries.following'],
      ['61 minutes', ['warning deliveries.workflows_owed'], 'deliveries.workflows_owed'],
    ] as const) {
      await change(`completed_at = now() - interval '${age}'`)
      const { problems, find } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal(expected)
      expect(find(code).seen).to.match(/^2 delivery\(s\) are owed a workflow, the oldest since 20\d\d-/)
    }
  })

  it('names the oldest delivery that retention should have deleted a day ago, and its schedule', async () => {
    const env = settingsOf(database.url, { RETENTION_COMPLETED_DAYS: '10', RETENTION_FAILED_DAYS: '20' })
    for (const [state, days] of [
      ['completed', 10],
      ['failed', 20],
      ['stopped', 20],
    ] as const) {
      const [delivery] = await publishRow(database.dataSource, organisationId)
      await setRow(database.dataSource, delivery!.deliveryId, { state, attempts: 1 })
      const completedAgo = (age: string) =>
        database.dataSource.query(`UPDATE delivery SET completed_at = now() - $2::interval WHERE id = $1`, [
          ...[delivery!.deliveryId, age],
        ])
      await completedAgo(`${days} days 23 hours`)
      expect((await examine(env)).problems).to.deep.equal([])
      await completedAgo(`${days + 2} days`)
      const { problems, find } = await examine(env)
      expect(problems).to.deep.equal(['warning retention.late'])
      const { seen, cure } = find('retention.late')
      expect(seen).to.match(
        new RegExp(`^a delivery ${state} at 20.* is still there, past its limit of ${days} days$`),
      )
      expect(cure).to.include(RETENTION_SCHEDULE_ID)
      await database.dataSource.query('TRUNCATE delivery CASCADE')
    }
  })
})
