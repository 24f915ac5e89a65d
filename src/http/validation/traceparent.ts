import type { TraceContext } from '../../deliveries/publish/publish-event.ts'

/**
 * W3C Trace Context, 3.2: version, trace id, parent id and flags in lower-case hexadecimal digits. The version `ff` and
 * ids of zeros only are invalid. A later version may have further fields after another hyphen; a comma would mean that
 * the header was sent more than once.
 */
const TRACEPARENT =
  /^(?!ff)(?<version>[0-9a-f]{2})-(?!0{32})(?<traceId>[0-9a-f]{32})-(?!0{16})(?<spanId>[0-9a-f]{16})-[0-9a-f]{2}(?<rest>-[^,]*)?$/

/** Parses the `traceparent` header; null when it is malformed, or sent more than once. */
export function parseTraceparent(header: string): TraceContext | null {
  const { version, traceId, spanId, rest } = TRACEPARENT.exec(header)?.groups ?? {}
  if (traceId === undefined || spanId === undefined) return null
  if (version === '00' && rest !== undefined) return null
  return { traceId, spanId }
}
