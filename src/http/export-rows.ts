import { addAbortSignal, Readable } from 'node:stream'
import type { Context } from 'koa'
import { createFairLimiter } from '../db/connection/fair-limiter.ts'
import { settlesWithin } from '../timers.ts'
import type { Route } from './route.ts'

export const NDJSON = 'application/x-ndjson'

/** Rows of one export at most; a last line says how the rest is requested. */
const MAX_EXPORT_ROWS = 10_000

/** For the description of a list that has an export. */
export const NDJSON_DESCRIPTION = `With \`Accept: application/x-ndjson\` every row from \`cursor\` on is streamed, one JSON text in each line, whatever \`limit\` says: up to ${MAX_EXPORT_ROWS.toLocaleString('en-GB')} rows and for about 30 seconds. Where more may follow, the last line is \`{"nextCursor":"…"}\`; where the connection ends without the end of the body, something is missing.`

/** An export begins no further page after this time. */
const MAX_EXPORT_MS = 30_000

/** What the client has not read by then is cut off. */
const TEXT_TIMEOUT_MS = 120_000

/**
 * By then the first page is there or has failed, in whatever way the database does; a search that goes on without a row
 * is no longer waited for. What fails afterwards cuts the answer off.
 */
const ANSWER_AFTER_MS = 9_000

const PAGE_ROWS = 200

/** Pages that a process reads at once for exports, round robin by organisation: the database is left to everything else. */
const readFairly = createFairLimiter({
  concurrency: 2,
  perKey: 2,
  startTimeoutMs: 5_000,
  timeoutMs: 8_000,
  maxQueued: 1_000,
})

type Page<Row> = { page: Row[]; last: string | null; searchedUntil?: Date | null }

/** Reads the rows that follow the one with the id `after`. */
export type ReadPage<Row> = (range: { after: string | null; limit: number }) => Promise<Page<Row>>

type ExportSource<Row> = {
  organisationId: string
  read: ReadPage<Row>
  present: (row: Row) => unknown
  cursorAfter: (last: string) => string
  after: string | null
}

/** Returns whether the client prefers NDJSON, where the route has it. */
export function wantsNdjson({ responses }: Route, ctx: Context): boolean {
  if (responses[200]?.ndjson === undefined) return false
  ctx.vary('Accept')
  return ctx.accepts('application/json', NDJSON) === NDJSON
}

/**
 * Streams the rows of a list as NDJSON, page after page as the client reads. Where {@link MAX_EXPORT_ROWS} or the time
 * ended it, the last line is `{ nextCursor }`. A stream that is destroyed reads no further page.
 */
export function exportRows<Row>(source: ExportSource<Row>): Promise<Readable> {
  return streamText((signal) => readLines(source, signal))
}

/**
 * Streams what `read` yields, piece by piece as the client reads. What it throws before its first piece is thrown, unless
 * that takes longer than {@link ANSWER_AFTER_MS}; later it cuts the stream off. `signal` is aborted when the stream ends.
 */
export async function streamText(
  read: (signal: AbortSignal) => AsyncGenerator<string, void>,
): Promise<Readable> {
  const ended = new AbortController()
  const pieces = read(ended.signal)
  const first = pieces.next()
  if (await settlesWithin(first, ANSWER_AFTER_MS)) await first
  const stream = Readable.from(prepend(first, pieces), { objectMode: true, highWaterMark: 1 })
  stream.once('close', () => ended.abort())
  return addAbortSignal(AbortSignal.timeout(TEXT_TIMEOUT_MS), stream)
}

async function* prepend(
  first: Promise<IteratorResult<string, void>>,
  rest: AsyncGenerator<string, void>,
): AsyncGenerator<string, void> {
  const { done, value } = await first
  if (done === true) return
  yield value
  yield* rest
}

/** Yields the lines of a page at a time. */
async function* readLines<Row>(
  { organisationId, read, present, cursorAfter, after }: ExportSource<Row>,
  signal: AbortSignal,
): AsyncGenerator<string, void> {
  const endMs = performance.now() + MAX_EXPORT_MS
  let last = after
  for (let count = 0; count < MAX_EXPORT_ROWS && performance.now() < endMs && !signal.aborted;) {
    const range = { after: last, limit: Math.min(PAGE_ROWS, MAX_EXPORT_ROWS - count) }
    const found = await readFairly(organisationId, () => read(range))
    count += found.page.length
    last = found.last
    if (found.page.length > 0) yield found.page.map((row) => `${JSON.stringify(present(row))}\n`).join('')
    if (last === null) return
  }
  if (last !== null) yield `${JSON.stringify({ nextCursor: cursorAfter(last) })}\n`
}
