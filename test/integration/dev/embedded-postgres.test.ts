import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Client } from 'pg'
import { startEmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts'
import type { EmbeddedPostgres } from '../../../src/dev/embedded-postgres.ts'

describe('the embedded PostgreSQL', () => {
  let folder: string
  let server: EmbeddedPostgres | null = null
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-postgres-'))
  })
  after(async () => {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('keeps its data over a restart', async () => {
    server = await start()
    await server.createDatabase('posthorn')
    await query(server.databaseUrl('posthorn'), `create table kept as select 'here' as word`)
    await server.stop()
    server = await start()
    // Asked for at every start of the product.
    await server.createDatabase('posthorn')
    expect(await query(server.databaseUrl('posthorn'), 'select word from kept')).to.deep.equal([
      { word: 'here' },
    ])
  })

  it('refuses a wrong password, and makes the right one readable by its user only', async () => {
    server ??= await start()
    const url = new URL(server.adminUrl)
    url.password = 'wrong'
    const refusal = await query(url.href, 'select 1').catch(
      (error: unknown) => (error as { code: string }).code,
    )
    expect(refusal).to.equal('28P01')
    expect(statSync(join(folder, 'password')).mode & 0o777).to.equal(0o600)
    expect(statSync(folder).mode & 0o777).to.equal(0o700)
  })

  function start(): Promise<EmbeddedPostgres> {
    const logFile = join(folder, 'postgres.log')
    return startEmbeddedPostgres({
      dataDir: folder,
      logFile,
      print: () => undefined,
      flags: ['-c', 'fsync=off'],
    })
  }
})

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  try {
    await client.connect()
    const { rows } = await client.query<Record<string, unknown>>(sql)
    return rows
  } finally {
    await client.end()
  }
}
