import { Registry } from 'prom-client'
import { createAttemptMetrics, createDispatchMetrics } from './metrics/deliveries.ts'
import { createDefine } from './metrics/define.ts'
import { createProcessMetrics, createRequestMetrics, createStreamMetrics } from './metrics/requests.ts'

/**
 * What this process counts, noted where it happens. None of these calls throws or waits. Labels are words of closed
 * sets, never an id, a name or a URL. Series whose labels are known begin at 0, so that the first increase is seen.
 */
export type Metrics = ReturnType<typeof createMetrics>

/** Counts into `registry`, which nothing else may have used for metrics of these names. */
export function createMetrics(registry: Registry = new Registry()) {
  const define = createDefine(registry)
  return {
    ...createAttemptMetrics(define),
    ...createDispatchMetrics(define),
    ...createProcessMetrics(define),
    ...createRequestMetrics(define),
    ...createStreamMetrics(define),
  }
}
