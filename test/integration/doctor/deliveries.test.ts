import { expect } from 'chai'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { useDatabase } from '../../helpers/database/use-database.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { examine, settingsOf } from '../../helpers/doctor/doctored.ts'

describe('posthorn doctor examines deliveries', function () {
  this.timeout(30_000)
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
    expect(find('deliveries.backlog').seen).to.equal('no delivery is overdue')
  })

  it('names deliveries that no process has started, and their age', async () => {
    await publishRow(database.dataSource, organisationId)
    await change(
      `created_at = now() - interval '20 minutes', sweep_at = now() - interval '19 minutes', lease_until = now() - interval '19 minutes'`,
    )
    const { problems, find } = await examine(settingsOf(database.url))
    expect(problems).to.deep.equal(['error deliveries.overdue', 'error deliveries.unstarted'])
    expect(find('deliveries.overdue').seen).to.match(
      /^overdue: 0 by up to five minutes, 1 by up to an hour, 0 by more than an hour; the oldest since 20\d\d-/,
    )
    expect(find('deliveries.unstarted').seen).to.match(/^1 delivery\(s\), .* such as [0-9a-f-]{36}$/)
  })

  it('names attempts that were lost with their worker', async () => {
    await waiting(1)
    await change(
      `state = 'in_progress', claims = 1, next_attempt_at = now() - interval '2 minutes', lease_until = now() - interval '90 seconds', sweep_at = now() - interval '90 seconds'`,
    )
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

  it('names deliveries that the sweeper never examines', async () => {
    await waiting(2)
    await change('sweep_at = NULL')
    const { problems, find } = await examine(settingsOf(database.url))
    expect(problems).to.deep.equal(['error deliveries.unrecoverable'])
    expect(find('deliveries.unrecoverable').seen).to.match(/^2 delivery\(s\)/)
  })
})
