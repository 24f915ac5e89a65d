import type { BenchOptions } from '../scenario.ts'
import { createDevEngines } from './dev-engines.ts'
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
  switch (kind) {
    case 'dev':
      return createDevEngines(surroundings)
    case 'postgres':
      return createPostgresEngines(surroundings)
  }
}
