import { createTestApi, type TestApi } from './api.ts'
import type { TestDatabase } from '../database/database.ts'
import { useDatabase } from '../database/use-database.ts'

/** What the tests of one `describe` share; filled before the first of them. */
export type ApiSuite = { readonly database: TestDatabase; readonly api: TestApi }

/** A database and an API of its own for the `describe` it is called in, closed and dropped after its tests. */
export function useApi(): ApiSuite {
  const suite = { database: useDatabase() } as { database: TestDatabase; api: TestApi }
  before(async () => {
    suite.api = await createTestApi(suite.database.dataSource)
  })
  after(() => suite.api.close())
  return suite
}
