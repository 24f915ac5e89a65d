import type { ClientBase } from 'pg'
import {
  EntityManager,
  type DataSource,
  type InsertQueryBuilder,
  type ObjectLiteral,
  type UpdateQueryBuilder,
} from 'typeorm'

/** The pool, or the transaction one works in. */
export type Db = DataSource | EntityManager

/** One run of a hand-written statement. `Row` is the shape that its SELECT or RETURNING list gives. */
export type Statement = {
  rows<Row>(db: Db): Promise<Row[]>
  /** For a statement that gives at most one row. */
  first<Row>(db: Db): Promise<Row | null>
  /** For a statement that always gives one row. */
  one<Row>(db: Db): Promise<Row>
  /** For a statement whose rows are ids, each as `id`. */
  ids(db: Db): Promise<string[]>
  /**
   * For the few that every event needs: each connection parses and plans it once, under a `name` of its own. `onSent` is
   * called when there is a connection, just before the statement is sent.
   */
  preparedRows<Row extends object>(db: Db, name: string, onSent?: () => void): Promise<Row[]>
}

/** The text with `$1` to `$n`, and the names of the parameters in that order. */
type Compiled = { text: string; names: string[] }

/** By the text as it was written, which never has a value in it: so there are as many as statements in the code. */
const compiled = new Map<string, Compiled>()

/** String literals, quoted names and casts are matched too, so that a colon in them is passed over. */
const TOKEN = /'(?:[^']|'')*'|"[^"]*"|::|:([A-Za-z]\w*)/g

/**
 * Binds the named parameters (`:organisationId`) of hand-written SQL. A text always gives the same `$n` text, which a
 * prepared statement needs. Throws when a parameter is missing, undefined or unused; the compiler reports a missing one
 * whose name is in the text itself, not in an interpolated `string`.
 */
export function sql<Text extends string>(text: Text, ...[given = {}]: Given<Text>): Statement {
  const statement = bind(text, given)
  return {
    rows: (db) => run(db, statement),
    first: async <Row>(db: Db) => (await run<Row>(db, statement))[0] ?? null,
    async one<Row>(db: Db) {
      const [row] = await run<Row>(db, statement)
      if (row === undefined) throw new Error(`The statement gave no row: ${statement.text}`)
      return row
    },
    ids: async (db) => (await run<{ id: string }>(db, statement)).map(({ id }) => id),
    preparedRows: (db, name, onSent) => runPrepared(db, { name, ...statement }, onSent),
  }
}

/** The statement as `pg` takes it. */
export function bind(text: string, parameters: Record<string, unknown>): { text: string; values: unknown[] } {
  const { text: numbered, names } = compile(text)
  const unused = Object.keys(parameters).filter((name) => !names.includes(name))
  if (unused.length > 0) throw new Error(`The statement has no parameter :${unused.join(', :')}`)
  const values = names.map((name) => {
    if (parameters[name] === undefined) throw new Error(`The statement needs a value for :${name}`)
    return parameters[name]
  })
  return { text: numbered, values }
}

function compile(text: string): Compiled {
  const known = compiled.get(text)
  if (known !== undefined) return known
  const names: string[] = []
  const numbered = text.replaceAll(TOKEN, (token, name: string | undefined) => {
    if (name === undefined) return token
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  compiled.set(text, { text: numbered, names })
  return { text: numbered, names }
}

async function run<Row>(db: Db, { text, values }: ReturnType<typeof bind>): Promise<Row[]> {
  const result: unknown = await db.query(text, values)
  if (!Array.isArray(result)) return []
  // TypeORM answers SELECT and INSERT with rows, but UPDATE and DELETE with `[rows, count]`.
  const [first, count] = result as unknown[]
  return (Array.isArray(first) && typeof count === 'number' ? first : result) as Row[]
}

/** TypeORM has no prepared statements, so this takes the connection from it. */
async function runPrepared<Row extends object>(
  db: Db,
  statement: ReturnType<typeof bind> & { name: string },
  onSent?: () => void,
): Promise<Row[]> {
  const pool = db instanceof EntityManager ? db.dataSource : db
  const transaction = db instanceof EntityManager ? db.queryRunner : undefined
  const runner = transaction ?? pool.createQueryRunner()
  try {
    const connection = (await runner.connect()) as ClientBase
    onSent?.()
    const { rows } = await connection.query<Row>(statement)
    return rows
  } finally {
    if (runner !== transaction) await runner.release()
  }
}

type Given<Text extends string> = [NameIn<Text>] extends [never]
  ? [parameters?: Record<string, unknown>]
  : [parameters: Record<NameIn<Text>, unknown> & Record<string, unknown>]

/** The names of the parameters in a text, without those in parts that are a `string` to the compiler. */
type NameIn<Text extends string, Found extends string = never> = Text extends `${string}:${infer After}`
  ? After extends `:${infer Cast}`
    ? NameIn<Cast, Found>
    : NameIn<After, Found | Word<After>>
  : Found

type Word<Text extends string> = Until<Until<Until<Until<Until<Text, '\n'>, ' '>, ','>, ')'>, ':'>

type Until<Text extends string, End extends string> = Text extends `${infer Start}${End}${string}`
  ? Start
  : Text

/** Columns of an entity to read, by property: what `find` takes as `select`. */
export type Columns<Entity> = { readonly [Property in keyof Entity]?: true }

/**
 * Runs an INSERT or UPDATE and returns these columns of the rows that it wrote, under the names of their properties;
 * TypeORM itself gives them under the names of the table.
 */
export async function returning<Entity extends ObjectLiteral, Shown extends Columns<Entity>>(
  query: InsertQueryBuilder<Entity> | UpdateQueryBuilder<Entity>,
  columns: Shown,
): Promise<Pick<Entity, keyof Shown & keyof Entity>[]> {
  const metadata = query.expressionMap.mainAlias?.metadata
  const list = Object.keys(columns).map((property) => {
    const column = metadata?.findColumnWithPropertyName(property)
    if (column === undefined) throw new Error(`The entity has no column ${property}`)
    return `${query.escape(column.databaseName)} AS ${query.escape(property)}`
  })
  const result = await query.returning(list.join(', ')).execute()
  return result.raw as Pick<Entity, keyof Shown & keyof Entity>[]
}

/** A page of a list; `last` is the `after` of the next page, null when this one ends the list. */
export type Page<Row> = { page: Row[]; last: string | null }

/**
 * Makes a page of up to `limit` rows from `limit + 1` rows that were read: the surplus row means that another page
 * follows.
 */
export function pageOf<Row extends { id: string }>(found: readonly Row[], limit: number): Page<Row> {
  const page = found.slice(0, limit)
  return { page, last: found.length > limit ? (page.at(-1)?.id ?? null) : null }
}
