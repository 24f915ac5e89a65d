import type { Registry } from 'prom-client'
import type { Backlog } from '../../db/queries/backlog.ts'
import type { PoolStatus } from '../../db/connection/pool-status.ts'
import type { DispatcherLoad } from '../../deliveries/dispatch/dispatcher.ts'
import type { TemporalService } from '../../temporal/temporal-service.ts'
import { createDefine } from '../../observability/metrics/define.ts'
import { createGauges } from './gauges.ts'

/** The sources of a scrape. Each returns within about a second, and none throws. */
export type Sources = {
  backlog: () => Promise<Backlog | null>
  pool: () => PoolStatus
  dispatcher: () => DispatcherLoad
  temporal: Pick<TemporalService, 'isUp' | 'workerLoad'>
  /** Address of the metrics of Temporal's native core; null when it serves none. */
  coreMetricsUrl: string | null
}

/** The core runs in this process, so a missing answer is not worth waiting for. */
const CORE_TIMEOUT_MS = 500

/** Returns all metrics of `registry` and `sources` in Prometheus' text format. */
export function createScrape(registry: Registry, sources: Sources): () => Promise<string> {
  const show = createGauges(createDefine(registry))
  return async () => {
    const [backlog, isTemporalUp, coreText] = await Promise.all([
      sources.backlog(),
      sources.temporal.isUp(),
      sources.coreMetricsUrl === null ? '' : readText(sources.coreMetricsUrl),
    ])
    const worker = sources.temporal.workerLoad()
    show({ backlog, isTemporalUp, worker, pool: sources.pool(), dispatcher: sources.dispatcher() })
    return `${await registry.metrics()}${coreText}`
  }
}

/** Returns the empty string when there is no answer: the other metrics are useful without it. */
async function readText(url: string): Promise<string> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(CORE_TIMEOUT_MS) })
    return response.ok ? await response.text() : ''
  } catch {
    return ''
  }
}
