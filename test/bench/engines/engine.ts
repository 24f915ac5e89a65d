import { join } from 'node:path'
import { defaultCacheDir } from '../../../src/dev/provision.ts'
import { provideTemporalCli, startTemporalDevServer } from '../../../src/dev/temporal-dev-server.ts'
import { cpuOfProcess } from '../measure/processes.ts'
import type { BenchOptions } from '../scenario.ts'
import { createPostgresEngines } from './postgres-engines.ts'

/** A Temporal server. */
export type RunningEngine = {
  /** host:port of gRPC. */
  address: string
  /** Processor time in ms so far, by process. */
  cpu(): Record<string, number>
  stop(): Promise<void>
}

/** Starts fresh ones: what a scenario leaves behind must not cost the next one anything. */
export type Engines = { start(): Promise<RunningEngine>; stop(): Promise<void> }

export type EngineSurroundings = { folder: string; shards: number; say: (line: string) => void }

export function createEngines(
  kind: BenchOptions['engine'],
  surroundings: EngineSurroundings,
): Promise<Engines> {
  return kind === 'dev' ? createDevEngines(surroundings) : createPostgresEngines(surroundings)
}

/** The development server that `npm start` runs, on a SQLite file of its own each time. */
async function createDevEngines({ folder, say: print }: EngineSurroundings): Promise<Engines> {
  const { env } = process
  const executable = await provideTemporalCli({ env, cacheDir: defaultCacheDir(env), print })
  let started = 0
  return {
    async start() {
      started += 1
      const server = await startTemporalDevServer({
        executable,
        dbFile: join(folder, `temporal-${started}.db`),
        logFile: join(folder, 'temporal.log'),
        headless: true,
        print: () => undefined,
      })
      return {
        address: server.address,
        cpu: () => ({ temporal: cpuOfProcess(server.pid) }),
        stop: () => server.stop(),
      }
    },
    stop: () => Promise.resolve(),
  }
}
