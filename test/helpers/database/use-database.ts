import { createTestDatabase, type TestDatabase } from './database.ts'

/** A database for the `describe` it is called in: there before the first of its hooks, dropped after the last. */
export function useDatabase(): TestDatabase {
  const database = {} as TestDatabase
  before(async function () {
    Object.assign(database, await createTestDatabase())
    // Hooks run in the order in which they are made: one that is made now comes after those that need the database.
    this.test?.parent?.afterAll(() => database.drop())
  })
  return database
}
