import type { Registry } from 'prom-client'
import type { Backlog } from '../db/queries/backlog.ts'
import type { PoolStatus } from '../db/pool-status.ts'
import type { DispatcherLoad } from '../deliveries/dispatch/dispatcher.ts'
import type { Engine } from '../temporal/engine.ts'
import { createDefine } from './define.ts'
import { createGauges } from './gauges.ts'

/** Where a scrape looks. Each answers within about a second, and none throws. */
export type Sources = {
  backlog: () => Promise<Backlog | null>
  pool: () => PoolStatus
  dispatcher: () => DispatcherLoad
  engine: Pick<Engine, 'isUp' | 'workerLoad'>
  /** Address of what the engine's native core has counted; null where it does not. */
  engineMetricsUrl: string | null
}

/** The core is in this very process: what has not come by then does not come. */
const CORE_TIMEOUT_MS = 500

/** The text of everything that `registry` and `sources` have, in Prometheus' format. */
export function createScrape(registry: Registry, sources: Sources): () => Promise<string> {
  const show = createGauges(createDefine(registry))
  return async () => {
    const [backlog, engineUp, engineText] = await Promise.all([
      sources.backlog(),
      sources.engine.isUp(),
      sources.engineMetricsUrl === null ? '' : readText(sources.engineMetricsUrl),
    ])
    const worker = sources.engine.workerLoad()
    show({ backlog, engineUp, worker, pool: sources.pool(), dispatcher: sources.dispatcher() })
    return `${await registry.metrics()}${engineText}`
  }
}

/** Empty when there is no answer: everything else is worth having without it. */
async function readText(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(CORE_TIMEOUT_MS) })
    return response.ok ? await response.text() : ''
  } catch {
    return ''
  }
}
