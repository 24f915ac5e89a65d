/** The rows of one webhook that the protocol reads and writes. Instants are ms from now, since time moves by shifting them. */
export type Image = Record<TableName, Row[]>
export type Row = Record<string, unknown>

/** In the order in which rows may be inserted. */
export const TABLES = ['webhook', 'event', 'delivery', 'attempt', 'incident'] as const
export type TableName = (typeof TABLES)[number]

/** The virtual instant at which every transaction runs. */
export const NOW = '2030-01-01T00:00:00.000Z'
const NOW_MS = Date.parse(NOW)

/** An instant further in the past makes no difference: statements only ask whether it has passed. */
export const LONG_AGO_MS = -5

export const ORGANISATION = 'org_protocol'
export const WEBHOOK = '00000000-0000-4000-8000-0000000000aa'
export const OPEN_INCIDENT = '00000000-0000-4000-8000-0000000000bb'

/** The ids of delivery `index` and of its event. */
export const deliveryId = (index: number): string => `00000000-0000-4000-8000-0000000000d${index}`
export const eventId = (index: number): string => `00000000-0000-4000-8000-0000000000e${index}`

/** Columns that no statement decides by. They have these values in every image, and are not part of a state. */
const CONSTANT: Record<TableName, (row: Row) => Row> = {
  webhook: () => ({
    organisation_id: ORGANISATION,
    url: 'https://receiver.example.com/',
    description: '',
    secret: 'sealed',
    created_at: NOW,
    updated_at: NOW,
  }),
  event: ({ id }) => ({
    organisation_id: ORGANISATION,
    // Unique in the table.
    sequence: Number(String(id).at(-1)) + 1,
    // Of an erasure the deliveries have a mark, and no statement of the protocol reads anything else.
    body: '\\x7b7d',
    erased_at: null,
    erased_by: null,
    emitted_at: NOW,
    trace_id: 'trace',
    is_test: false,
    created_at: NOW,
  }),
  delivery: () => ({ organisation_id: ORGANISATION, is_test: false }),
  attempt: () => ({
    url: 'https://receiver.example.com/',
    trigger: 'schedule',
    started_at: NOW,
    duration_ms: 1,
    status_code: null,
    failure_code: null,
    error: null,
    response_headers: null,
    response_body: null,
    response_truncated: false,
  }),
  incident: () => ({
    organisation_id: ORGANISATION,
    opened_at: NOW,
    resumed_at: null,
    first_notified_at: null,
    second_notified_at: null,
    sweep_at: null,
  }),
}

/** Instants of which only matters whether they are null. */
const MARKS = new Set([
  'deleted_at',
  'created_at',
  'started_at',
  'workflow_started_at',
  'paused_since',
  'completed_at',
  'closed_at',
  'exhausted_at',
])

/** Gives a row as PostgreSQL has it the shape that it has in an image. `instants`: the columns with a time. */
export function toImageRow(table: TableName, row: Row, instants: ReadonlySet<string>): Row {
  const constant = CONSTANT[table](row)
  const kept: Row = {}
  for (const [column, value] of Object.entries(row)) {
    if (column in constant) continue
    kept[column] = instants.has(column) && typeof value === 'string' ? offsetOf(column, value) : value
  }
  return kept
}

function offsetOf(column: string, instant: string): number {
  return MARKS.has(column) ? -1 : Date.parse(instant) - NOW_MS
}

/** The reverse of `toImageRow`. */
export function toDatabaseRow(table: TableName, row: Row, instants: ReadonlySet<string>): Row {
  const whole: Row = { ...CONSTANT[table](row) }
  for (const [column, value] of Object.entries(row))
    whole[column] =
      instants.has(column) && typeof value === 'number' ? new Date(NOW_MS + value).toISOString() : value
  return whole
}

/** Names of columns whose instants move when time passes. */
export const MOVING = ['next_attempt_at', 'lease_until', 'sweep_at'] as const

/** Lets `ms` pass. `isSwept`: the sweeper has read the `sweep_at` of the row, and compares it. */
export function shiftImage(image: Image, ms: number, isSwept: (row: Row) => boolean): Image {
  const delivery = image.delivery.map((row) => {
    const shifted = { ...row }
    for (const column of MOVING) {
      const value = shifted[column]
      if (typeof value !== 'number') continue
      const isExact = column === 'sweep_at' && isSwept(row)
      shifted[column] = isExact ? value - ms : Math.max(LONG_AGO_MS, value - ms)
    }
    return shifted
  })
  return { ...image, delivery }
}

/**
 * Returns the rows under the names that every state uses, without what no statement reads again: closed incidents, and
 * attempts before the last of their delivery.
 */
export function normalise(image: Image): Image {
  const names = new Map(
    image.delivery.map((row) => [row['id'], deliveryId(Number(String(row['event_id']).at(-1)))]),
  )
  const attempts = new Map(image.delivery.map((row) => [row['id'], row['attempts']]))
  const named = (row: Row, column: string): Row => ({ ...row, [column]: names.get(row[column]) })
  const inOrder = (one: Row, other: Row): number =>
    String(one['event_id'] ?? one['delivery_id']).localeCompare(
      String(other['event_id'] ?? other['delivery_id']),
    )
  return {
    ...image,
    delivery: image.delivery.map((row) => named(row, 'id')).sort(inOrder),
    attempt: image.attempt
      .filter((row) => row['number'] === attempts.get(row['delivery_id']))
      .map((row) => named(row, 'delivery_id'))
      .sort(inOrder),
    incident: image.incident
      .filter((row) => row['closed_at'] === null)
      .map((row) => ({ ...row, id: OPEN_INCIDENT })),
  }
}
