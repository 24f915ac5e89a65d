import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startTemporalDevServer } from '../../../src/dev/temporal-dev-server.ts'
import { freePort } from '../../../src/free-port.ts'
import { testServers } from '../runner/servers.ts'

/** A Temporal server of one's own on one port, that can be stopped, started, and emptied. */
export type WipeableTemporal = {
  address: string
  start(): Promise<void>
  stop(): Promise<void>
  /** Stops it, throws all of its data away, and starts an empty one on the same port, without search attributes. */
  wipe(): Promise<void>
  close(): Promise<void>
}

export async function startWipeableTemporal(): Promise<WipeableTemporal> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-temporal-'))
  const port = await freePort()
  let generation = 0
  const start = (searchAttributes: boolean) =>
    startTemporalDevServer({
      executable: testServers().temporalCli,
      dbFile: join(folder, `temporal-${generation}.db`),
      port,
      logFile: join(folder, 'temporal.log'),
      headless: true,
      searchAttributes,
      print: () => undefined,
    })
  let server = await start(true)
  return {
    address: server.address,
    async start() {
      server = await start(generation === 0)
    },
    stop: () => server.stop(),
    async wipe() {
      await server.stop()
      generation++
      server = await start(false)
    },
    async close() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
