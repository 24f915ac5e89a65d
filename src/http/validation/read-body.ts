import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { setImmediate as nextLoopIteration } from 'node:timers/promises'
import inflate from 'inflation'
import type { Context } from 'koa'
import getRawBody from 'raw-body'
import { nestingDepth } from '../../domain/text-rules.ts'
import { badRequest, overloaded, ProblemError } from '../../problem-error.ts'
import { createRoundRobinQueue } from '../../round-robin-queue.ts'
import { createTally } from '../../tally.ts'

/** Deeper JSON is no plausible event, and would burden every program that reads it. */
const MAX_DEPTH = 64

/** Parsing a larger body takes longer than the rest of its request: 240 KB take up to 6 ms. */
const LARGE_BODY_BYTES = 16 * 1024

/** What the bodies that are being read, or wait to be parsed, may take in all; of one organisation a quarter. */
const MAX_HELD_BYTES = 128 * 1024 * 1024
const MAX_HELD_BYTES_OF_ONE = MAX_HELD_BYTES / 4

const heldBytes = createTally()

/** Starts parsing one large body in each iteration of the event loop, so that many at once delay no other request. */
const largeBodies = createRoundRobinQueue<() => void>({
  concurrency: 1,
  hasRoom: () => true,
  async run(parse) {
    await nextLoopIteration()
    parse()
  },
})

/**
 * Reads, decompresses and parses a JSON body of at most `maxBytes`, which each route sets (counted after decompression).
 * Large bodies are read round robin by organisation. Throws 415 for another content type or encoding, 413 when it is
 * larger, 400 when it is not JSON in UTF-8, 503 while too many are read.
 */
export async function readJsonBody(
  ctx: Context,
  limits: { maxBytes: number; organisationId: string },
): Promise<{ text: string; value: unknown }> {
  if (mediaType(ctx) !== 'application/json' || !isUtf8(ctx.request.charset)) throw unsupportedMediaType()
  const release = holdBytes(ctx, limits)
  try {
    return await readHeld(ctx, limits)
  } finally {
    release()
  }
}

/** Counts the bytes that a body may take, until it is released. Packed bodies may take as many as their route allows. */
function holdBytes(
  ctx: Context,
  { maxBytes, organisationId }: { maxBytes: number; organisationId: string },
): () => void {
  const announced = ctx.get('content-length')
  const isKnown = announced !== '' && ctx.get('content-encoding') === ''
  const bytes = isKnown ? Math.min(Number(announced), maxBytes) : maxBytes
  const ofOne = heldBytes.of(organisationId)
  if (heldBytes.total() + bytes > MAX_HELD_BYTES || ofOne + bytes > MAX_HELD_BYTES_OF_ONE)
    throw overloaded('Too many bodies are being read.', 1)
  heldBytes.add(organisationId, bytes)
  return () => heldBytes.add(organisationId, -bytes)
}

async function readHeld(
  ctx: Context,
  { maxBytes, organisationId }: { maxBytes: number; organisationId: string },
): Promise<{ text: string; value: unknown }> {
  const bytes = await readBytes(ctx, maxBytes)
  if (bytes.length > LARGE_BODY_BYTES)
    await new Promise<void>((parse) => largeBodies.add(organisationId, parse))
  const text = decode(bytes)
  if (nestingDepth(text) > MAX_DEPTH)
    throw badRequest('too_deep', `The body is nested deeper than ${MAX_DEPTH} levels.`)
  try {
    return { text, value: JSON.parse(text) as unknown }
  } catch {
    throw badRequest('malformed_json', 'The body is not valid JSON.')
  }
}

/** Returns whether a request announces a body, be it of no known length. */
export function hasBody(ctx: Context): boolean {
  return ctx.get('transfer-encoding') !== '' || Number(ctx.get('content-length')) > 0
}

async function readBytes(ctx: Context, maxBytes: number): Promise<Buffer> {
  try {
    // The announced length is that of the compressed body; raw-body counts the decompressed bytes.
    const encoding = ctx.get('content-encoding').toLowerCase() || 'identity'
    const length = encoding === 'identity' ? ctx.request.length : null
    return await getRawBody(decompress(ctx.req, encoding), { limit: maxBytes, length })
  } catch (error) {
    throw bodyProblem(error, maxBytes)
  }
}

function decompress(request: IncomingMessage, encoding: string): Readable {
  // The option is missing in its types; with it inflation does not read the header, in which case matters.
  const stream = inflate(request, { encoding } as object)
  // A pipe does not propagate a disconnect, past or future: the reader would wait for ever.
  if (request.destroyed) throw new Error('the sender disconnected')
  if (stream === request) return stream
  request.once('error', (error) => stream.destroy(error))
  // The reader stops listening once it has read enough; later errors do not matter.
  stream.on('error', () => undefined)
  return stream
}

function bodyProblem(error: unknown, maxBytes: number): unknown {
  const status = error instanceof Error && 'status' in error ? error.status : undefined
  if (status === 413) {
    return new ProblemError('body_too_large', {
      detail: `The body may have at most ${maxBytes} bytes.`,
      headers: { connection: 'close' },
    })
  }
  if (status === 415) return unsupportedMediaType()
  return badRequest('incomplete_body', 'The body could not be read to its end.')
}

const decoder = new TextDecoder('utf-8', { fatal: true })

function decode(bytes: Buffer): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw badRequest('malformed_json', 'The body is not valid UTF-8.')
  }
}

/** Parses the header itself: `ctx.is` returns no type where there is no body. */
function mediaType(ctx: Context): string {
  const [type = ''] = ctx.get('content-type').split(';', 1)
  return type.trim().toLowerCase()
}

function isUtf8(charset: string): boolean {
  return charset === '' || /^utf-?8$/i.test(charset)
}

function unsupportedMediaType(): ProblemError {
  return new ProblemError('unsupported_media_type', {
    detail:
      'Send the body as Content-Type: application/json, in UTF-8, plain or packed with gzip, deflate or br.',
  })
}
