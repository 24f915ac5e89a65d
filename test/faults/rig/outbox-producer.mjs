// A platform under load: each transaction makes an order and inserts its event, and one in four is rolled back.
import pg from 'pg'

const [url, ...organisations] = process.argv.slice(2)
const CONCURRENT_TRANSACTIONS = 3
const PAUSE_MS = 60

/** No more than relays that are killed can publish in time: how long the kills take depends on the machine. */
const MAX_ORDERS = 600

async function produce(offset) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  for (let count = offset; ; count++) {
    const organisation = organisations[count % organisations.length]
    await client.query('BEGIN')
    const { rows } = await client.query('INSERT INTO shop_order DEFAULT VALUES RETURNING id')
    if (Number(rows[0].id) > MAX_ORDERS) {
      await client.query('ROLLBACK')
      return
    }
    await client.query(
      `INSERT INTO posthorn_outbox (organisation_id, event, data) VALUES ($1, 'customer:created', $2)`,
      [organisation, JSON.stringify({ id: `order-${rows[0].id}` })],
    )
    await client.query(count % 4 === 3 ? 'ROLLBACK' : 'COMMIT')
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

await Promise.all(Array.from({ length: CONCURRENT_TRANSACTIONS }, (_, index) => produce(index)))
// It lives until it is killed.
setInterval(() => undefined, 60_000)
