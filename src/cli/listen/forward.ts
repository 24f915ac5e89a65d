import { createHttpClient, type PostResult } from '../../outbound/http-client.ts'
import { signedHeaders } from '../../outbound/signed-headers.ts'
import type { UrlPolicy } from '../../outbound/url-rules.ts'
import { USER_AGENT } from '../user-agent.ts'
import type { StreamedEvent } from './follow-events.ts'

/** Bound on one POST, so that a receiver that never answers does not hold up the events behind it for longer. */
export const FORWARD_TIMEOUT_MS = 10_000

const CONNECT_TIMEOUT_MS = 5_000
const MAX_RESPONSE_BYTES = 1_024

/** Every address of both families: the user of this machine chooses where the events go, not a customer. */
export const FORWARD_POLICY: UrlPolicy = {
  allowHttp: true,
  allowedCidrs: ['0.0.0.0/1', '128.0.0.0/1', '::/1', '8000::/1'],
}

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
