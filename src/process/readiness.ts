import type { DataSource } from 'typeorm'
import { isDatabaseUp } from '../db/queries/is-database-up.ts'
import type { Sweeper } from '../deliveries/recovery/sweeper.ts'
import { isReady, presentReadiness, type Readiness } from '../domain/readiness.ts'
import type { Publisher } from '../deliveries/publish/publish.ts'
import type { TemporalService } from '../temporal/temporal-service.ts'

/** The parts that readiness depends on. `sweep` is null in a process without a worker. */
export type ReadinessParts = {
  dataSource: DataSource
  publish: Pick<Publisher, 'isFailing'>
  temporal: Pick<TemporalService, 'isUp' | 'workerLoad'>
  sweep: Pick<Sweeper, 'isStalled'> | null
  stopping: AbortSignal
}

/**
 * Builds the readiness of a process for the port of its metrics. A process with a worker is ready only while Temporal
 * answers, the worker takes tasks, and the sweeper ends its passes. It answers within about two seconds, and never
 * rejects.
 */
export function createReadiness(parts: ReadinessParts): () => Promise<{ isReady: boolean; body: Readiness }> {
  const { dataSource, publish, temporal, sweep, stopping } = parts
  return async () => {
    const [answers, isTemporalUp] = await Promise.all([isDatabaseUp(dataSource), temporal.isUp()])
    const takesTasks = temporal.workerLoad()?.isRunning ?? true
    const body = presentReadiness({
      isDatabaseUp: answers && !publish.isFailing(),
      isTemporalUp: isTemporalUp && takesTasks,
      isSweepStalled: sweep?.isStalled() ?? false,
      isStopping: stopping.aborted,
    })
    return { isReady: isReady(body, sweep === null ? 'api' : 'worker'), body }
  }
}
