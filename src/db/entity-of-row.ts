import type { InsertQueryBuilder, ObjectLiteral, UpdateQueryBuilder } from 'typeorm'

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
