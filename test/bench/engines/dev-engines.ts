import { join } from 'node:path'
import { defaultCacheDir } from '../../../src/dev/provision.ts'
import { provideTemporalCli } from '../../../src/dev/temporal-cli.ts'
import { startTemporalDevServer } from '../../../src/dev/temporal-dev-server.ts'
import { cpuOfProcess, findProcess } from '../measure/cpu.ts'
import type { Engines, EngineSurroundings } from './engine.ts'

/** The development server that `npm start` runs, on a SQLite file of its own each time. */
export async function createDevEngines({ folder, say }: EngineSurroundings): Promise<Engines> {
  const executable = await provideTemporalCli({
    env: process.env,
    cacheDir: defaultCacheDir(process.env),
    print: say,
  })
  let started = 0
  return {
    async start() {
      started += 1
      const dbFile = join(folder, `temporal-${started}.db`)
      const logFile = join(folder, 'temporal.log')
      const server = await startTemporalDevServer({
        executable,
        dbFile,
        logFile,
        headless: true,
        print: () => undefined,
      })
      const pid = findProcess(dbFile)
      return {
        address: server.address,
        cpu: () => ({ temporal: cpuOfProcess(pid) }),
        stop: () => server.stop(),
      }
    },
    stop: () => Promise.resolve(),
  }
}
