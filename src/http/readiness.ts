import { Type, type Static } from 'typebox'
import type { DataSource } from 'typeorm'
import { isDatabaseUp } from '../db/queries/server-state.ts'
import type { Publisher } from '../deliveries/publish/publish.ts'
import type { Sweeper } from '../deliveries/recovery/sweeper.ts'
import type { TemporalService } from '../temporal/temporal-service.ts'

/** The body of `/readyz`. `engine` is Temporal. */
export const ReadinessSchema = Type.Object(
  {
    database: Type.Enum(['up', 'down']),
    engine: Type.Enum(['up', 'down']),
    sweep: Type.Optional(
      Type.Literal('stalled', {
        description:
          'Only there when the recovery of deliveries has not come to the end of a pass for 30 seconds',
      }),
    ),
    process: Type.Optional(
      Type.Literal('stopping', { description: 'Only there when this process is about to end' }),
    ),
  },
  { title: 'Readiness', examples: [{ database: 'up', engine: 'up' }] },
)

/** The parts that readiness depends on. `sweep` is null in a process without a worker. */
export type ReadinessParts = {
  dataSource: DataSource
  publish: Pick<Publisher, 'isFailing'>
  temporal: Pick<TemporalService, 'isUp' | 'workerLoad'>
  sweep: Pick<Sweeper, 'isStalled'> | null
  stopping: AbortSignal
}

const inProgress = new WeakMap<ReadinessParts, ReturnType<typeof readReadiness>>()

/** Returns {@link readReadiness} of an API; requests that come while it is read share it, however many they are. */
export function readSharedReadiness(parts: ReadinessParts): ReturnType<typeof readReadiness> {
  const shared = inProgress.get(parts)
  if (shared !== undefined) return shared
  const reading = readReadiness(parts, 'api').finally(() => inProgress.delete(parts))
  inProgress.set(parts, reading)
  return reading
}

/**
 * Tells whether a process can do its work: an API needs a database that answers and takes events; a worker also needs
 * Temporal, tasks that it takes from it, and a sweeper that ends its passes. It answers within about two seconds, and
 * never rejects.
 */
export async function readReadiness(
  { dataSource, publish, temporal, sweep, stopping }: ReadinessParts,
  role: 'api' | 'worker',
): Promise<{ isReady: boolean; body: Static<typeof ReadinessSchema> }> {
  const [answers, isTemporalUp] = await Promise.all([isDatabaseUp(dataSource), temporal.isUp()])
  const isDatabaseServing = answers && !publish.isFailing()
  const isEngineServing = isTemporalUp && (temporal.workerLoad()?.isRunning ?? true)
  const isSweepStalled = sweep?.isStalled() ?? false
  const isWorking = role === 'api' || (isEngineServing && !isSweepStalled)
  return {
    isReady: isDatabaseServing && !stopping.aborted && isWorking,
    body: {
      database: isDatabaseServing ? 'up' : 'down',
      engine: isEngineServing ? 'up' : 'down',
      ...(isSweepStalled && { sweep: 'stalled' }),
      ...(stopping.aborted && { process: 'stopping' }),
    },
  }
}
