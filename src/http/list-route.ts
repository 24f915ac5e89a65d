import { addAbortSignal, Readable } from 'node:stream'
import { Type, type Static, type TObject, type TSchema } from 'typebox'
import type { Context } from 'koa'
import type { ApiDependencies } from './api.ts'
import { typedRoute, type Links, type Route, type RouteRequest } from './route.ts'
import { parseUuid } from '../ids.ts'
import { badRequest } from '../problem-error.ts'
import { orNull, timestamp } from './schemas/common.ts'
import { createFairLimiter } from '../db/connection/database-queues.ts'
import { settlesWithin } from '../timers.ts'

const searchedUntil = orNull(timestamp('2026-05-03T22:14:00.000Z'), {
  description:
    'How far back the request has looked, where it ended before the page was full; `nextCursor` goes on from there',
  examples: [null],
})

/**
 * Makes the route of a list in pages: its query, its answer and the cursors between pages. With `isSearched` a page may
 * end before it is full, and clients may prefer all rows as NDJSON. `open` checks the request and returns what reads a
 * page of it.
 */
export function listRoute<Item extends TSchema, Filter extends TObject, Row>(
  list: Pick<Route, 'path' | 'operationId' | 'summary' | 'description' | 'access'> & {
    title: string
    item: Item
    /** What the list has, in the description of `limit`; and in which order. */
    what: string
    order?: string
    /** What cursors begin with: it names the list and the version of the format. */
    cursorPrefix: string
    /** The id in the cursor of the example: one of ours, or one that the platform gives. */
    exampleId: string
    filter?: Filter
    isSearched?: true
    links?: Links
    open(
      dependencies: ApiDependencies,
      request: RouteRequest<unknown, Static<Filter>>,
    ): ReadPage<Row> | Promise<ReadPage<Row>>
    present(
      row: Row,
      request: RouteRequest<unknown, Static<Filter>>,
      dependencies: ApiDependencies,
    ): Static<Item>
  },
): Route {
  const { title, item, what, order, exampleId, filter, isSearched = false, links = {} } = list
  const { path, operationId, summary, description, access } = list
  const cursor = cursorOf(list.cursorPrefix, exampleId)
  const query = Type.Object(
    {
      ...filter?.properties,
      limit: Type.Integer({ minimum: 1, maximum: 100, default: 50, description: `${what} per page` }),
      cursor: Type.Optional(
        Type.String({
          title: title.replace('List', 'Cursor'),
          description: '`nextCursor` of the page before',
          documented: { pattern: cursor.pattern },
        }),
      ),
    },
    { additionalProperties: false },
  )
  const schema = Type.Object(
    {
      data: Type.Array(item, order === undefined ? {} : { description: order }),
      nextCursor: orNull(Type.String({ examples: [cursor.after(exampleId)] }), {
        description: 'For the next page; null on the last',
      }),
      ...(isSearched && { searchedUntil }),
    },
    { title },
  )
  return typedRoute({
    method: 'GET',
    path,
    operationId,
    summary,
    ...(description !== undefined && {
      description: isSearched ? `${description} ${NDJSON_DESCRIPTION}` : description,
    }),
    access,
    query,
    responses: {
      200: {
        description: 'One page',
        schema,
        ...(isSearched && { ndjson: item }),
        links: { [operationId]: { cursor: '$response.body#/nextCursor' }, ...links },
      },
    },
    async handle(dependencies, request) {
      const { limit, cursor: given } = request.query
      const after = given === undefined ? null : cursor.parse(given)
      const filtered = request as RouteRequest<unknown, Static<Filter>>
      const read = await list.open(dependencies, filtered)
      const presentRow = (row: Row): Static<Item> => list.present(row, filtered, dependencies)
      if (request.wantsNdjson) {
        const { organisationId } = request.actor
        const source = { organisationId, read, present: presentRow, cursorAfter: cursor.after, after }
        return { status: 200, text: { type: NDJSON, stream: await exportRows(source) } }
      }
      const { page, last, searchedUntil: until } = await read({ after, limit })
      const body = { data: page.map(presentRow), nextCursor: last === null ? null : cursor.after(last) }
      return {
        status: 200,
        body: { ...body, ...(isSearched && { searchedUntil: until?.toISOString() ?? null }) },
      }
    },
  })
}

/** The digits of an id of ours, in their groups. */
const UUID_DIGITS = '([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})'
const PLATFORM_ID = '([A-Za-z0-9_-]{1,64})'

/** Cursors of one kind of list: `prefix`, then the groups of an id like `exampleId`, of ours without their hyphens. */
function cursorOf(prefix: string, exampleId: string) {
  const isOurs = parseUuid(exampleId) !== null
  const pattern = `^${prefix}${isOurs ? UUID_DIGITS : PLATFORM_ID}$`
  return {
    /** A regular expression of exactly the cursors that `parse` takes. */
    pattern,
    /** Returns the cursor of the page that begins after the row `id`. */
    after: (id: string) => prefix + (isOurs ? id.replaceAll('-', '') : id),
    /** Returns the id in a cursor. Throws 400 for text that `after` did not make. */
    parse(cursor: string): string {
      const [, ...found] = new RegExp(pattern).exec(cursor) ?? []
      if (found.length === 0)
        throw badRequest(
          'invalid_cursor',
          'The cursor is no nextCursor of this list. Without it the first page comes.',
        )
      return found.join('-')
    },
  }
}

const NDJSON = 'application/x-ndjson'

/** Rows of one export at most; a last line says how the rest is requested. */
const MAX_EXPORT_ROWS = 10_000

/** For the description of a list that has an export. */
const NDJSON_DESCRIPTION = `With \`Accept: application/x-ndjson\` every row from \`cursor\` on is streamed, one JSON text in each line, whatever \`limit\` says: up to ${MAX_EXPORT_ROWS.toLocaleString('en-GB')} rows and for about 30 seconds. Where more may follow, the last line is \`{"nextCursor":"…"}\`; where the connection ends without the end of the body, something is missing.`

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
