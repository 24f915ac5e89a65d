import { Type, type Static, type TObject, type TSchema } from 'typebox'
import type { ApiDependencies } from './api.ts'
import { exportRows, NDJSON, NDJSON_DESCRIPTION, type ReadPage } from './export-rows.ts'
import { typedRoute, type Links, type Route, type RouteRequest } from './route.ts'
import { parseUuid } from '../ids.ts'
import { badRequest } from '../problem-error.ts'
import { orNull, timestamp } from './schemas/common.ts'

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
