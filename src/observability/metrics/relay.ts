import { seconds, type Define } from './define.ts'

const OUTCOMES = ['published', 'refused', 'failed'] as const

/** In seconds. */
const DURATION_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15]

export type RelayMetrics = ReturnType<typeof createRelayMetrics>

/** Defines what `posthorn relay` counts. */
export function createRelayMetrics(define: Define) {
  const tried = define.counter(
    'relay_rows_total',
    'Rows of the outbox that were tried: published, refused (parked), failed (tried again)',
    ['outcome'],
  )
  for (const outcome of OUTCOMES) tried.inc({ outcome }, 0)
  const durations = define.histogram(
    'relay_publish_duration_seconds',
    'How long the API took to answer a row',
    DURATION_BUCKETS,
  )
  return {
    rowTried(outcome: (typeof OUTCOMES)[number], durationMs: number): void {
      tried.inc({ outcome })
      durations.observe(seconds(durationMs))
    },
  }
}

/** The outbox at one scrape; null where it cannot be counted. */
type OutboxFigures = { waiting: number; parked: number; oldestAge: number }

/** Defines the gauges of `posthorn relay` that are read at a scrape. */
export function createRelayGauges(
  define: Define,
): (figures: OutboxFigures | null, state: { database: string; api: string }) => void {
  const up = define.gauge(
    'relay_up',
    '1 while the relay reads the outbox (database), and while the API takes rows (api)',
    ['part'],
  )
  const waiting = define.gauge('relay_waiting_rows', 'Rows of the outbox that are not published yet')
  const parked = define.gauge(
    'relay_parked_rows',
    'Rows of the outbox that were refused, and are left to you',
  )
  const oldest = define.gauge(
    'relay_oldest_waiting_age_seconds',
    'Age of the oldest row that is not published yet',
  )

  return (figures, { database, api }) => {
    up.set({ part: 'database' }, database === 'up' ? 1 : 0)
    up.set({ part: 'api' }, api === 'up' ? 1 : 0)
    if (figures === null) {
      for (const gauge of [waiting, parked, oldest]) gauge.remove()
      return
    }
    waiting.set(figures.waiting)
    parked.set(figures.parked)
    oldest.set(figures.oldestAge)
  }
}
