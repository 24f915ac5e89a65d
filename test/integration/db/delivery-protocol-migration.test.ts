import { expect } from 'chai'
import { migrate } from '../../../src/cli/migrate.ts'
import { findOverdue, findOwed } from '../../../src/db/queries/due-deliveries.ts'
import { sweepLater } from '../../../src/deliveries/protocol/sweep.ts'
import { DeliveryProtocol10 } from '../../../src/db/migrations/0010-delivery-protocol.ts'
import { createTestDatabase, type TestDatabase } from '../../helpers/database/database.ts'
import { createMember, createWebhookRow, publishRow } from '../../helpers/database/factories.ts'
import { eventually } from '../../helpers/eventually.ts'

const { name: NAME } = new DeliveryProtocol10()
const RECEIVER_URL = 'http://127.0.0.1:9/hook'

describe('the migration of the delivery protocol', () => {
  let database: TestDatabase

  beforeEach(async () => {
    database = await createTestDatabase()
  })
  afterEach(() => database.drop())

  /** Takes the migration back, as if the version before ran. */
  const revert = (): Promise<void> =>
    database.dataSource.transaction(async ({ queryRunner }) => {
      await new DeliveryProtocol10().down(queryRunner!)
      await queryRunner!.query('DELETE FROM migrations WHERE name = $1', [NAME])
    })

  /** Migrates with no process connected; a session is gone a moment after its connection. */
  async function migrateAlone(): Promise<string[]> {
    await database.dataSource.destroy()
    try {
      return await eventually(async () => {
        const applied = await migrate(database.url).catch((error: unknown) => String(error))
        if (typeof applied === 'string' && applied.includes('processes of Posthorn stopped'))
          throw new Error(applied)
        if (typeof applied === 'string') return [applied]
        return applied
      })
    } finally {
      await database.dataSource.initialize()
    }
  }

  /** A delivery of the version before, with these columns set. */
  async function oldDelivery(columns: string): Promise<string> {
    const { organisationId } = await createMember(database.dataSource)
    await createWebhookRow(database.dataSource, { organisationId, url: RECEIVER_URL })
    const [delivery] = await publishRow(database.dataSource, organisationId)
    await revert()
    await database.dataSource.query(`UPDATE delivery SET ${columns}`)
    return delivery!.deliveryId
  }

  it('is refused in words while a process is connected, and applied once it has stopped', async () => {
    await createMember(database.dataSource)
    await revert()
    const refusal = await migrate(database.url).then(() => '', String)
    expect(refusal).to.include('This migration needs all processes of Posthorn stopped.')
    expect(refusal).to.match(/connected to this database: \d+, from 127\.0\.0\.1\.$/m)
    expect(refusal).to.include('Stop every posthorn serve, api and worker, and run posthorn migrate again.')
    expect(await columnsOf(database)).to.include.members(['started_at', 'claims'])

    expect(await migrateAlone()).to.deep.equal([NAME])
    expect(await columnsOf(database)).to.include.members(['workflow_started_at', 'runs'])
  })

  it('is applied to a database that is not in use yet, whatever waits for it', async () => {
    await revert()
    expect(await migrate(database.url)).to.deep.equal([NAME])
  })

  for (const [title, columns, expected] of [
    ['counts a run that may have been lost', 'claims = 1', { state: 'in_progress', runs: 1 }],
    [
      'resumes what was never attempted, where its webhook takes it',
      `state = 'stopped', stop_reason = 'webhook_disabled', completed_at = now(), sweep_at = NULL`,
      { state: 'pending', runs: 0 },
    ],
    [
      'keeps what had attempts stopped',
      `state = 'stopped', attempts = 2, stop_reason = 'webhook_disabled', completed_at = now(), sweep_at = NULL`,
      { state: 'stopped', runs: 0 },
    ],
    [
      'gives up the lease of a process on what it has not begun',
      `owner = gen_random_uuid(), lease_until = now()`,
      { state: 'pending', runs: 0 },
    ],
    [
      'has what waits without an attempt pending',
      `state = 'waiting', next_attempt_at = now(), started_at = now()`,
      { state: 'pending', runs: 0 },
    ],
    [
      'has what is pending after an attempt wait',
      `attempts = 1, claims = 1, owner = gen_random_uuid(), lease_until = now()`,
      { state: 'waiting', runs: 0 },
    ],
    [
      'leaves an attempt without an owner to the next run, and counts it',
      `state = 'in_progress', claims = 0, attempts = 3, owner = NULL, lease_until = NULL, started_at = now()`,
      { state: 'in_progress', runs: 1 },
    ],
    [
      'clears what a final delivery was requested and paused with',
      `state = 'failed', attempts = 10, next_attempt_at = now(), retry_requested = true, paused_since = now(),
       owner = gen_random_uuid(), lease_until = now(), claims = 1, sweep_at = NULL`,
      { state: 'failed', runs: 0 },
    ],
  ] as const)
    it(title, async () => {
      await oldDelivery(columns)
      expect(await migrateAlone()).to.deep.equal([NAME])
      const [row] = await database.dataSource.query<object[]>('SELECT state, runs FROM delivery')
      expect(row).to.deep.equal(expected)
    })

  it('owes no workflow to what was stopped before any attempt', async () => {
    await oldDelivery(
      `state = 'stopped', stop_reason = 'webhook_disabled', completed_at = now(), sweep_at = now()`,
    )
    await database.dataSource.query('UPDATE webhook SET enabled = false')
    expect(await migrateAlone()).to.deep.equal([NAME])
    expect(await findOwed(database.dataSource)).to.equal(null)
  })

  it('leaves rows that the sweeper takes, though the version before wrote microseconds', async () => {
    const deliveryId = await oldDelivery(
      `state = 'waiting', attempts = 1, started_at = now(), next_attempt_at = now(),
       sweep_at = date_trunc('second', now()) - interval '0.999877 s'`,
    )
    await migrateAlone()
    const [due] = await findOverdue(database.dataSource, 10)
    expect(due).to.include({ deliveryId })
    const taken = await sweepLater(database.dataSource, [{ ...due!, inMs: 1_000, pausedSince: null }])
    expect(taken).to.have.length(1)
  })

  it('names a row in a state that no repair makes possible, and changes nothing', async () => {
    const id = await oldDelivery(`state = 'completed', attempts = 0, completed_at = now(), sweep_at = NULL`)
    const [refusal] = await migrateAlone()
    expect(refusal).to.include(`${id} (completed: delivery_attempts_check)`)
    expect(await columnsOf(database)).to.include.members(['started_at', 'claims'])
  })
})

async function columnsOf({ dataSource }: TestDatabase): Promise<string[]> {
  const columns = await dataSource.query<{ name: string }[]>(
    `SELECT attname AS name FROM pg_attribute WHERE attrelid = 'delivery'::regclass AND attnum > 0`,
  )
  return columns.map(({ name }) => name)
}
