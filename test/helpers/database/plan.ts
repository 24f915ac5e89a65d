import { expect } from 'chai'
import type { DataSource } from 'typeorm'

type Node = { 'Node Type': string; 'Relation Name'?: string; 'Index Name'?: string; Plans?: Node[] }

/** The plan of the one statement that `query` sends: tables it reads from end to end, and indexes it uses. */
export async function planOf(
  dataSource: DataSource,
  query: (db: DataSource) => Promise<unknown>,
): Promise<{ scanned: string[]; indexes: string[] }> {
  const sent: [sql: string, parameters: unknown[]][] = []
  const listening = Object.assign(Object.create(dataSource) as DataSource, {
    query: (sql: string, parameters: unknown[]) => {
      sent.push([sql, parameters])
      return dataSource.query(sql, parameters)
    },
  })
  await query(listening)
  expect(sent).to.have.lengthOf(1)
  const [sql, parameters] = sent[0]!
  const [{ 'QUERY PLAN': plans }] = await dataSource.query<[{ 'QUERY PLAN': { Plan: Node }[] }]>(
    `EXPLAIN (FORMAT JSON) ${sql}`,
    parameters,
  )
  const nodes = plans.flatMap(({ Plan }) => flatten(Plan))
  return {
    scanned: nodes.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? ''] : [])),
    indexes: nodes.flatMap((node) => node['Index Name'] ?? []),
  }
}

function flatten(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(flatten)]
}
