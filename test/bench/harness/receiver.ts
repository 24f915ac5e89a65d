import { adapter } from '../target/posthorn.ts'
import { startHarnessProcess } from './harness-process.ts'

/** One POST as the receiver saw it, times by `clock`. `answeredAt`: just before the answer left; null if none did. */
export type Arrival = { deliveryId: string; path: string; arrivedAt: number; answeredAt: number | null }

/** Of one path: POSTs that came, and different deliveries among them. */
export type PathCount = { posts: number; deliveries: number }

export type ReceiverRequest =
  | { kind: 'listen'; host: string; tls: { key: string; cert: string } | null; idHeader: string }
  | { kind: 'counts' }
  | { kind: 'take' }

/**
 * Customers' endpoints; the path says how one behaves: `/ok/…` confirms, `/fail/N/…` refuses the first N POSTs of each
 * delivery and then confirms, `/hang/…` never answers.
 */
export type Receiver = {
  pid: number
  port: number
  /** Without a path. */
  url: string
  counts(): Promise<Record<string, PathCount>>
  /** Everything that came since it was last asked, in order. */
  take(): Promise<Arrival[]>
  stop(): Promise<void>
}

/** `idHeader`: names the delivery of a POST. Listens on `host`. */
export async function startReceiver(
  tls: { key: string; cert: string } | null,
  { host, idHeader } = { host: '127.0.0.1', idHeader: adapter.idHeader },
): Promise<Receiver> {
  const child = startHarnessProcess<ReceiverRequest>(new URL('./receiver-main.ts', import.meta.url))
  const port = await child.ask<number>({ kind: 'listen', host, tls, idHeader })
  return {
    pid: child.pid,
    port,
    url: tls === null ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    counts: () => child.ask({ kind: 'counts' }),
    take: () => child.ask({ kind: 'take' }),
    stop: () => child.stop(),
  }
}

/** POSTs of a delivery until that path confirms it. */
export function postsUntilConfirmed(path: string): number {
  const [, behaviour, number] = path.split('/')
  return behaviour === 'fail' ? Number(number) + 1 : 1
}
