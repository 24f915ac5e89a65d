import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import { bind } from '../../../src/db/connection/db.ts'
import { loadSql } from '../../../src/deliveries/protocol/load-sql.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const FOLDER = new URL('../../../src/deliveries/protocol/', import.meta.url)
const NAMES = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.sql'))
  .map((name) => name.replace('.sql', ''))

describe('the statements of the delivery protocol', () => {
  const database = useDatabase()

  for (const name of NAMES) {
    it(`${name}: is one statement that PostgreSQL prepares with a type for each parameter`, async () => {
      const { text } = loadSql(name)
      const names = new Set([...text.matchAll(/(?<!:):([A-Za-z]\w*)/g)].map(([, parameter]) => parameter!))
      const { text: numbered, values } = bind(
        text,
        Object.fromEntries([...names].map((parameter) => [parameter, null])),
      )
      await database.dataSource.query(`PREPARE described AS ${numbered}`)
      const [{ types }] = await database.dataSource.query<[{ types: string[] }]>(
        `SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = 'described'`,
      )
      await database.dataSource.query('DEALLOCATE described')
      expect(types).to.have.length(values.length)
      expect(types).not.to.include('unknown')
    })
  }
})
