import { expect } from 'chai'
import { countForOperators, listOperatorWebhooks } from '../../../src/db/queries/operator-view.ts'
import { OPERATOR_STATES } from '../../../src/domain/webhook-status.ts'
import { planOf } from '../../helpers/database/plan.ts'
import { useDatabase } from '../../helpers/database/database.ts'

/** Four webhooks each: one is disabled, one has an open incident and failed attempts, one a paused delivery. */
const FEW = 1_500
const MANY = 4 * FEW

/** What grows with the depth of an index, and with how full its pages are. */
const MAX_GROWTH = 1.5

/** The others have at most a row for each webhook. */
const BIG = ['delivery', 'attempt', 'event']

describe("the operator's view of many organisations", () => {
  const database = useDatabase()
  const reads = {
    overview: (db: typeof database.dataSource) => countForOperators(db),
    ...Object.fromEntries(
      OPERATOR_STATES.map((state) => [
        state,
        (db: typeof database.dataSource) => listOperatorWebhooks(db, { state, before: null, limit: 50 }),
      ]),
    ),
  }
  const STATEMENTS: Record<string, number> = { overview: 3, failing: 4, degraded: 4, paused: 3, disabled: 3 }

  async function plans() {
    const found = []
    for (const [name, read] of Object.entries(reads))
      found.push({ name, ...(await planOf(database.dataSource, read, STATEMENTS[name])) })
    return found
  }

  it('costs the same with four times as many, and reads no big table from end to end', async () => {
    await grow(0, FEW)
    const few = await plans()
    await grow(FEW, MANY)
    const many = await plans()
    for (const [index, { name, scanned, pages }] of many.entries()) {
      expect(
        scanned.filter((table) => BIG.includes(table)),
        name,
      ).to.deep.equal([])
      expect(pages / few[index]!.pages, `${name}: ${few[index]!.pages} and ${pages} pages`).to.be.below(
        MAX_GROWTH,
      )
    }
    process.stdout.write(`      pages: ${many.map(({ name, pages }) => `${name} ${pages}`).join(', ')}\n`)
  })

  async function grow(from: number, to: number): Promise<void> {
    const query = (sql: string) => database.dataSource.query(sql, [from, to - 1])
    await query(
      `INSERT INTO organisation (id, name, email, time_zone)
       SELECT 'org_' || n, 'Organisation', 'a@b.example', 'UTC' FROM generate_series($1::int, $2::int) n`,
    )
    await query(
      `INSERT INTO webhook (id, organisation_id, url, subscribed_event_keys, enabled, secret)
       SELECT uuidv7(), 'org_' || n, 'https://hooks.customer.com/' || kind, ARRAY['*'], kind <> 0, 'x'
         FROM generate_series($1::int, $2::int) n, generate_series(0, 3) kind`,
    )
    await query(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT uuidv7(), 'org_' || n, 'customer:created', '{}', now(), 'trace'
         FROM generate_series($1::int, $2::int) n`,
    )
    const webhooks = (kind: number) =>
      `FROM generate_series($1::int, $2::int) n JOIN webhook w
         ON w.organisation_id = 'org_' || n AND w.url LIKE '%/${kind}'`
    await query(
      `INSERT INTO incident (id, organisation_id, webhook_id) SELECT uuidv7(), w.organisation_id, w.id ${webhooks(1)}`,
    )
    await query(
      `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, next_attempt_at, sweep_at,
                             workflow_started_at, paused_since)
       SELECT uuidv7(), e.id, w.id, w.organisation_id, 'waiting', 1, now(), now(), now(),
              CASE WHEN w.url LIKE '%/2' THEN now() END
         FROM generate_series($1::int, $2::int) n
         JOIN webhook w ON w.organisation_id = 'org_' || n AND w.enabled
         JOIN event e ON e.organisation_id = w.organisation_id`,
    )
    await query(
      `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, status_code, failure_code)
       SELECT d.id, number, d.webhook_id, 'schedule', 'https://x.example/', now() - number * interval '1 minute', 80,
              'failed', 503, 'http_status'
         ${webhooks(1)} JOIN delivery d ON d.webhook_id = w.id, generate_series(1, 3) number`,
    )
    await database.dataSource.query('VACUUM ANALYZE')
  }
})
