import type { DataSource } from 'typeorm'

/** Returns all rows of each table as text, with what is stored as bytes decoded. */
export async function textsOfTables(dataSource: DataSource): Promise<Map<string, string>> {
  const tables = await dataSource.query<{ name: string }[]>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`,
  )
  const texts = new Map<string, string>()
  for (const { name } of tables) {
    const found = await dataSource.query<{ row: object }[]>(`SELECT to_jsonb(t) AS row FROM "${name}" t`)
    texts.set(name, found.map(({ row }) => readable(row)).join('\n'))
  }
  return texts
}

function readable(row: object): string {
  const text = JSON.stringify(row)
  const bytes = [...text.matchAll(/\\\\x([0-9a-f]+)/g)].map(([, hex = '']) =>
    Buffer.from(hex, 'hex').toString(),
  )
  return [text, ...bytes].join('\n')
}
