import { addAbortSignal, Readable } from 'node:stream'
import type { Context } from 'koa'
import pLimit from 'p-limit'
import type { Route } from './route.ts'

export const NDJSON = 'application/x-ndjson'

/** Rows of one export at most; a last line says how the rest is requested. */
const MAX_EXPORT_ROWS = 10_000

/** For the description of a list that has an export. */
export const NDJSON_DESCRIPTION = `With \`Accept: application/x-ndjson\` every row from \`cursor\` on is streamed, one JSON text in each line, whatever \`limit\` says: up to ${MAX_EXPORT_ROWS.toLocaleString('en-GB')} rows and for about 30 seconds. Where more may follow, the last line is \`{"nextCursor":"…"}\`; where the connection ends without the end of the body, something is missing.`

/** An export begins no further page after this time. */
const MAX_EXPORT_MS = 30_000

/** One that the client has not read by then is cut off. */
const EXPORT_TIMEOUT_MS = 120_000

const PAGE_ROWS = 200

/** Pages that a process reads at once for exports, so that these leave the database to everything else. */
const turns = pLimit(2)

type Page<Row> = { page: Row[]; last: string | null; searchedUntil?: Date | null }

/** Reads the rows that follow the one with the id `after`. */
export type ReadPage<Row> = (range: { after: string | null; limit: number }) => Promise<Page<Row>>

type ExportSource<Row> = {
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
export async function exportRows<Row>(source: ExportSource<Row>): Promise<Readable> {
  const lines = readLines(source)
  // What is thrown before the first line is still answered with a problem.
  const first = await lines.next()
  const stream = Readable.from(prepend(first, lines), { objectMode: true, highWaterMark: 1 })
  return addAbortSignal(AbortSignal.timeout(EXPORT_TIMEOUT_MS), stream)
}

async function* prepend(
  first: IteratorResult<string, void>,
  rest: AsyncGenerator<string, void>,
): AsyncGenerator<string, void> {
  if (first.done === true) return
  yield first.value
  yield* rest
}

/** Yields the lines of a page at a time. */
async function* readLines<Row>({
  read,
  present,
  cursorAfter,
  after,
}: ExportSource<Row>): AsyncGenerator<string, void> {
  const endMs = performance.now() + MAX_EXPORT_MS
  let last = after
  for (let count = 0; count < MAX_EXPORT_ROWS && performance.now() < endMs;) {
    const range = { after: last, limit: Math.min(PAGE_ROWS, MAX_EXPORT_ROWS - count) }
    const found = await turns(() => read(range))
    count += found.page.length
    last = found.last
    if (found.page.length > 0) yield found.page.map((row) => `${JSON.stringify(present(row))}\n`).join('')
    if (last === null) return
  }
  if (last !== null) yield `${JSON.stringify({ nextCursor: cursorAfter(last) })}\n`
}
