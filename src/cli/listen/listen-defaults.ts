import type { UrlPolicy } from '../../outbound/url-rules.ts'

export const DEFAULT_API = 'http://127.0.0.1:3000'

/** Bound on one POST, so that a receiver that never answers does not hold up the events behind it for longer. */
export const FORWARD_TIMEOUT_MS = 10_000

/** Every address of both families: the user of this machine chooses where the events go, not a customer. */
export const FORWARD_POLICY: UrlPolicy = {
  allowHttp: true,
  allowedCidrs: ['0.0.0.0/1', '128.0.0.0/1', '::/1', '8000::/1'],
}
