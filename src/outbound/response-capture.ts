/** The stored part of an answer. `truncated`: the endpoint sent, or announced, more body than is stored here. */
export type CapturedResponse = { headers: Record<string, string>; body: string; truncated: boolean }

/** Collects body bytes up to a bound. */
export type BodyCapture = {
  /** Keeps what fits of `chunk`; false when the bound is passed, so that reading can stop. */
  add(chunk: Buffer): boolean
  /** The endpoint's body ended as it should. */
  end(): void
  text(): string
  isTruncated(): boolean
}

// As many bytes as undici accepts (http-client.ts), so that a row of the attempt table has a bounded size.
const MAX_HEADERS_BYTES = 16 * 1024
/** Stands for a value that had no room left. */
const TOO_LONG = '[not kept: too long]'
/** Every control but tab and line ends, and what changes the direction of text: embeddings, overrides, isolates. */
const UNSAFE = /[^\P{Cc}\t\n\r]|[\u202a-\u202e\u2066-\u2069]/gu
const decoder = new TextDecoder('utf-8')
const REDACTED = '[redacted]'
/**
 * Response headers whose values are stored: they describe the answer and help to find the request in the receiver's
 * log. Whatever else a server invents may carry a credential. docs/api.md lists them.
 */
export const STORED_HEADERS: ReadonlySet<string> = new Set([
  'age',
  'allow',
  'cache-control',
  'cf-ray',
  'connection',
  'content-encoding',
  'content-language',
  'content-length',
  'content-type',
  'date',
  'expires',
  'keep-alive',
  'last-modified',
  'ratelimit',
  'ratelimit-limit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'ratelimit-reset',
  'request-id',
  'retry-after',
  'server',
  'traceparent',
  'transfer-encoding',
  'vary',
  'via',
  'x-amzn-requestid',
  'x-amzn-trace-id',
  'x-cache',
  'x-correlation-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
  'x-served-by',
  'x-trace-id',
])

/**
 * Headers as they are stored: lower-case names, repeated ones joined, values of `STORED_HEADERS` only, 16 KiB in all.
 */
export function captureHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const captured: [string, string][] = []
  let roomBytes = MAX_HEADERS_BYTES
  for (const [rawName, rawValue] of Object.entries(headers)) {
    if (rawValue === undefined) continue
    const name = storable(rawName.toLowerCase())
    const joined = Array.isArray(rawValue) ? rawValue.join(', ') : rawValue
    const value = STORED_HEADERS.has(name) ? storable(joined) : REDACTED
    const sizeBytes = Buffer.byteLength(name) + Buffer.byteLength(value)
    const fits = sizeBytes <= roomBytes
    // Text of one byte per character grows when it is stored as UTF-8, so even undici's bound can be passed.
    captured.push([name, fits ? value : TOO_LONG])
    if (fits) roomBytes -= sizeBytes
  }
  // fromEntries defines own properties, so a header called __proto__ is just a header.
  return Object.fromEntries(captured)
}

/** Collects at most `maxBytes` of a body as text. Bytes that are no UTF-8 become U+FFFD; nothing is inflated. */
export function createBodyCapture(maxBytes: number): BodyCapture {
  const chunks: Buffer[] = []
  let capturedBytes = 0
  let isWhole = false
  let isOverflowing = false

  return {
    add(chunk) {
      const part = chunk.subarray(0, maxBytes - capturedBytes)
      chunks.push(part)
      capturedBytes += part.length
      isOverflowing ||= part.length < chunk.length
      return !isOverflowing
    },
    end() {
      isWhole = true
    },
    text: () => storable(decoder.decode(Buffer.concat(chunks))),
    isTruncated: () => isOverflowing || !isWhole,
  }
}

/**
 * PostgreSQL's text and jsonb refuse U+0000; the other controls steer terminals, and the ones of direction make a page
 * show another text than it contains. Decoding has seen to it that there are no lone surrogates.
 */
function storable(text: string): string {
  return text.replaceAll(UNSAFE, '\ufffd')
}
