import type { Define } from './define.ts'

/** Why a stream came to its end (`src/stream/client-stream.ts`). */
type StreamEnd = 'client' | 'slow' | 'rights' | 'stopped' | 'regressed' | 'fault'

export type StreamMetrics = {
  streamOpened(): void
  /** One event was given to one stream. */
  streamSent(): void
  streamEnded(reason: StreamEnd): void
}

const ENDS: readonly StreamEnd[] = ['client', 'slow', 'rights', 'stopped', 'regressed', 'fault']

export function createStreamMetrics(define: Define): StreamMetrics {
  const open = define.gauge('streams_open', 'Event streams that are open')
  const sent = define.counter('stream_events_sent_total', 'Events given to streams, once for each stream')
  const ended = define.counter(
    'streams_ended_total',
    'Event streams that ended: client, slow, rights, stopped, regressed (another database), fault',
    ['reason'],
  )
  for (const reason of ENDS) ended.inc({ reason }, 0)

  return {
    streamOpened: () => open.inc(),
    streamSent: () => sent.inc(),
    streamEnded(reason) {
      open.dec()
      ended.inc({ reason })
    },
  }
}
