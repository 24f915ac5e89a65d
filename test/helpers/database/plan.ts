import { expect } from 'chai'
import type { DataSource } from 'typeorm'

type Node = { 'Node Type': string; 'Relation Name'?: string; 'Index Name'?: string; Plans?: Node[] }
type Root = Node & { 'Shared Hit Blocks': number; 'Shared Read Blocks': number }

/**
 * The plan of the `count` statements that `query` sends: tables it reads from end to end, indexes it uses, and how many pages
 * it reads, each as often as it is read.
 */
export async function planOf(
  dataSource: DataSource,
  query: (db: DataSource) => Promise<unknown>,
  count = 1,
): Promise<{ scanned: string[]; indexes: string[]; pages: number }> {
  const sent: [sql: string, parameters: unknown[]][] = []
  const listening = Object.assign(Object.create(dataSource) as DataSource, {
    query: (sql: string, parameters: unknown[]) => {
      sent.push([sql, parameters])
      return dataSource.query(sql, parameters)
    },
  })
  await query(listening)
  expect(sent).to.have.lengthOf(count)
  const plans = []
  for (const [sql, parameters] of sent) plans.push(...(await explain(dataSource, sql, parameters)))
  const nodes = plans.flatMap(({ Plan }) => flatten(Plan))
  return {
    scanned: nodes.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? ''] : [])),
    indexes: nodes.flatMap((node) => node['Index Name'] ?? []),
    pages: plans.reduce((sum, { Plan }) => sum + Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks'], 0),
  }
}

/** Runs the statement, which changes nothing. */
async function explain(
  dataSource: DataSource,
  sql: string,
  parameters: unknown[],
): Promise<{ Plan: Root }[]> {
  const runner = dataSource.createQueryRunner()
  await runner.startTransaction()
  try {
    const [{ 'QUERY PLAN': plans }] = (await runner.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${sql}`,
      parameters,
    )) as [{ 'QUERY PLAN': { Plan: Root }[] }]
    return plans
  } finally {
    await runner.rollbackTransaction()
    await runner.release()
  }
}

function flatten(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}
