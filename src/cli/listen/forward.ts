import { createHttpClient, type PostResult } from '../../outbound/http-client.ts'
import { signedHeaders } from '../../outbound/signed-headers.ts'
import { USER_AGENT } from '../../outbound/user-agent.ts'
import type { StreamedEvent } from './follow-events.ts'
import { FORWARD_POLICY, FORWARD_TIMEOUT_MS } from './listen-defaults.ts'

const CONNECT_TIMEOUT_MS = 5_000
const MAX_RESPONSE_BYTES = 1_024

type Forwarder = {
  /** Sends one event as webhooks send it: same client, headers and bytes. Rejects only when `signal` aborts. */
  forward(event: StreamedEvent, signal: AbortSignal): Promise<PostResult>
  close(): Promise<void>
}

export function createForwarder({ url, secret }: { url: string; secret: string }): Forwarder {
  const client = createHttpClient({
    ...FORWARD_POLICY,
    timeoutMs: FORWARD_TIMEOUT_MS,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    userAgent: USER_AGENT,
  })
  return {
    forward({ id, data }, signal) {
      const body = Buffer.from(data)
      return client.post({ url, headers: signedHeaders(id, secret, body), body, signal, reuseKey: 'listen' })
    },
    close: () => client.close(),
  }
}
