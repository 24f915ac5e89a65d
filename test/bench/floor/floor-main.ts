import { createHmac, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { Pool } from 'undici'
import { serveHarness } from '../harness/harness-process.ts'
import type { FloorRequest } from './floor.ts'

// The smallest honest program that does what `direct` does: an event and its delivery are on the disk before the 202, the
// POST is signed, and its outcome is recorded. Batches, connections and stored columns are Posthorn's. It has one customer,
// checks nothing, repeats nothing, and loses what is in memory when it ends.

const MAX_BATCH_SIZE = 100
const RECORD_LINGER_MS = 5
const MAX_POSTS = 50
const POOL_SIZE = 10
const SECRET = 'ab'.repeat(32)

const TABLES = `
  CREATE TABLE event (id uuid PRIMARY KEY DEFAULT uuidv7(), key text, body bytea, created_at timestamptz DEFAULT now());
  CREATE TABLE delivery (id uuid PRIMARY KEY DEFAULT uuidv7(), event_id uuid NOT NULL, state text DEFAULT 'in_progress',
                         completed_at timestamptz);
  CREATE TABLE attempt (delivery_id uuid, number int, started_at timestamptz, duration_ms int, status_code int,
                        headers text, body text, PRIMARY KEY (delivery_id, number))`

const COMMIT = {
  name: 'commit',
  text: `
  WITH given AS (
    SELECT uuidv7() AS event_id, uuidv7() AS id, key, substring($1::bytea FROM start FOR length) AS body, place
      FROM unnest($2::int[], $3::int[], $4::text[]) WITH ORDINALITY AS given (start, length, key, place)
  ), new_event AS (
    INSERT INTO event (id, key, body) SELECT event_id, key, body FROM given
  ), new_delivery AS (
    INSERT INTO delivery (id, event_id) SELECT id, event_id FROM given
  )
  SELECT id, event_id AS "eventId" FROM given ORDER BY place`,
}

const RECORD = {
  name: 'record',
  text: `
  WITH given AS (
    SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::int[], $4::int[], $5::text[], $6::text[])
      AS given (id, started_at, duration_ms, status_code, headers, body)
  ), done AS (
    UPDATE delivery d SET state = 'completed', completed_at = now() FROM given g WHERE d.id = g.id
  )
  INSERT INTO attempt (delivery_id, number, started_at, duration_ms, status_code, headers, body)
  SELECT id, 1, started_at, duration_ms, status_code, headers, body FROM given`,
}

type Committed = { id: string; eventId: string }
type Outcome = {
  id: string
  startedAt: Date
  durationMs: number
  statusCode: number
  headers: string
  body: string
}

serveHarness(async ({ databaseUrl, hookUrl }: FloorRequest) => {
  const database = new pg.Pool({ connectionString: databaseUrl, max: POOL_SIZE })
  await database.query(TABLES)
  const hook = new URL(hookUrl)
  const client = new Pool(hook.origin, { connections: MAX_POSTS })
  const commit = grouped(0, async (events: { key: string; body: Buffer }[]): Promise<Committed[]> => {
    let next = 1
    const starts = events.map(({ body }) => (next += body.length) - body.length)
    const lengths = events.map(({ body }) => body.length)
    const keys = events.map(({ key }) => key)
    const bodies = Buffer.concat(events.map(({ body }) => body))
    return (await database.query<Committed>({ ...COMMIT, values: [bodies, starts, lengths, keys] })).rows
  })
  const record = grouped(RECORD_LINGER_MS, async (outcomes: Outcome[]): Promise<true[]> => {
    const column = <Name extends keyof Outcome>(name: Name) => outcomes.map((outcome) => outcome[name])
    const values = [
      column('id'),
      column('startedAt'),
      column('durationMs'),
      column('statusCode'),
      column('headers'),
      column('body'),
    ]
    await database.query({ ...RECORD, values })
    return outcomes.map(() => true)
  })

  function post(id: string, body: Buffer): Promise<Outcome> {
    const startedAt = new Date()
    const startedAtMs = performance.now()
    const headers = {
      'content-type': 'application/json',
      'x-webhook-event-id': id,
      'x-webhook-signature': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
    }
    let head = { statusCode: 0, headers: '' }
    const chunks: Buffer[] = []
    return new Promise((resolve, reject) => {
      client.dispatch(
        { method: 'POST', path: hook.pathname, headers, body },
        {
          onRequestStart: () => undefined,
          onResponseStart: (_, statusCode, given) => (head = { statusCode, headers: JSON.stringify(given) }),
          onResponseData: (_, chunk) => void chunks.push(chunk),
          onResponseEnd() {
            const durationMs = Math.round(performance.now() - startedAtMs)
            resolve({ id, startedAt, durationMs, ...head, body: Buffer.concat(chunks).toString() })
          },
          onResponseError: (_, error) => reject(error),
        },
      )
    })
  }

  async function publish(request: IncomingMessage): Promise<object> {
    const { event, data } = JSON.parse(await text(request)) as { event: string; data: object }
    const traceId = randomBytes(16).toString('hex')
    const envelope = { event, data, timestamp: Date.now(), traceId, triggeredBy: null }
    const body = Buffer.from(JSON.stringify(envelope))
    const { id, eventId } = await commit({ key: event, body })
    void post(id, body).then(record)
    return { id: eventId, deliveries: [{ id, webhookId: 'floor' }] }
  }

  const server = createServer((request, response) => {
    void publish(request).then((answer) => {
      const json = JSON.stringify(answer)
      response.writeHead(202, { 'content-type': 'application/json', 'content-length': json.length }).end(json)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

/** Runs items in groups, one after the other, each `lingerMs` after its first item or when it is full. */
function grouped<Item, Result>(
  lingerMs: number,
  run: (items: Item[]) => Promise<Result[]>,
): (item: Item) => Promise<Result> {
  const queue: { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void }[] = []
  let isScheduled = false
  async function runNext(): Promise<void> {
    const group = queue.splice(0, MAX_BATCH_SIZE)
    await run(group.map(({ item }) => item)).then(
      (results) => group.forEach(({ resolve }, index) => resolve(results[index]!)),
      (error: unknown) => group.forEach(({ reject }) => reject(error)),
    )
    isScheduled = false
    schedule()
  }
  function schedule(): void {
    if (isScheduled || queue.length === 0) return
    isScheduled = true
    if (lingerMs === 0 || queue.length >= MAX_BATCH_SIZE) void runNext()
    else setTimeout(() => void runNext(), lingerMs)
  }
  return (item) =>
    new Promise((resolve, reject) => {
      queue.push({ item, resolve, reject })
      schedule()
    })
}
