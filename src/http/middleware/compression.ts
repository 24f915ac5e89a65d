import { Transform } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { constants } from 'node:zlib'
import type { Context, Middleware } from 'koa'
import compress from 'koa-compress'

/** Answers that are compressed at once; further ones go out as they are. Libuv's four threads also look up names. */
const MAX_CONCURRENT = 2

/** An answer that fits into a packet is not worth the time. */
const MIN_BYTES = 1_400

/** 256 KiB for an answer in progress, where the default takes megabytes. */
const BROTLI = { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 18 }

/**
 * Compresses answers to GET, in one piece: they have a length, and a client that does not read holds no compressor. An
 * answer whose `compress` is false is left alone, as secrets are: the length of a compressed one could give away what it
 * has in common with what an attacker had put next to it (BREACH). So is what is streamed (`no-transform`), and answers to
 * other methods, which show new secrets. Documents and files, which are the same bytes in each answer, are compressed once.
 */
export function compression(): Middleware {
  const compressOne = compress({
    br: { params: BROTLI },
    gzip: {},
    deflate: false,
    // Node.js 20 has none.
    zstd: false,
    threshold: MIN_BYTES,
  })
  const compressed = new WeakMap<Buffer, Map<string, Buffer>>()
  let running = 0

  /** Returns whether these bytes were compressed before in the best way that the client accepts. */
  function answerAgain(ctx: Context): boolean {
    const known = Buffer.isBuffer(ctx.body) ? compressed.get(ctx.body) : undefined
    const encoding = ['br', 'gzip'].find((name) => ctx.acceptsEncodings(name) === name) ?? ''
    const bytes = known?.get(encoding)
    if (bytes === undefined) return false
    ctx.set('content-encoding', encoding)
    ctx.body = bytes
    return true
  }

  async function answerCompressed(ctx: Context): Promise<void> {
    const given: unknown = ctx.body
    await compressOne(ctx, () => Promise.resolve())
    const stream: unknown = ctx.body
    if (!(stream instanceof Transform)) return
    const bytes = await buffer(stream)
    ctx.body = bytes
    if (!Buffer.isBuffer(given)) return
    const known = compressed.get(given) ?? new Map<string, Buffer>()
    compressed.set(given, known.set(ctx.response.get('content-encoding'), bytes))
  }

  return async (ctx, next) => {
    // Also of what is not compressed this time.
    ctx.vary('Accept-Encoding')
    await next()
    if (ctx.method !== 'GET' || answerAgain(ctx) || running >= MAX_CONCURRENT) return
    running++
    try {
      await answerCompressed(ctx)
    } finally {
      running--
    }
  }
}
