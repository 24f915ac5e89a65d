import type { DataSource } from 'typeorm'

/** The data source, with each statement and the number of its parameters noted in `statements`. */
export function recording(dataSource: DataSource, statements: string[]): DataSource {
  const query = (statement: string, parameters: unknown[] = []): Promise<unknown> => {
    statements.push(`${statement} / ${parameters.length}`)
    return dataSource.query(statement, parameters)
  }
  return Object.create(dataSource, { query: { value: query } }) as DataSource
}
