import { Client, Connection } from '@temporalio/client'

/** The servers of a test run, which `test/run.ts` starts once and all tests share. */
export type TestServers = {
  /** PostgreSQL as its superuser. */
  adminUrl: string
  /** A migrated, empty database to copy. */
  templateDatabase: string
  temporalAddress: string
  /** Executables, for tests that need a server of their own. */
  temporalCli: string
  timeSkippingServer: string
  /** Null where there is none, and in suites that need none. */
  chromium: string | null
  /** The `posthorn` command, to be run by Node.js. */
  posthorn: string
}

export function testServers(): TestServers {
  const servers = process.env['POSTHORN_TEST_SERVERS']
  if (servers === undefined) throw new Error('run the tests with `npm test`: it starts the servers they need')
  return JSON.parse(servers) as TestServers
}

/** A client of their Temporal, connected for the `describe` it is called in. */
export function useTemporalClient(): Client {
  const client = Object.create(Client.prototype) as Client
  before(async () => {
    const connection = await Connection.connect({ address: testServers().temporalAddress })
    Object.assign(client, new Client({ connection }))
  })
  after(() => client.connection.close())
  return client
}
