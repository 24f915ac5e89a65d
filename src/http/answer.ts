import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Reply } from './route.ts'

/** Keeps proxies from storing, compressing or buffering the stream. */
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
  // The client reconnects after a stream, and a process that stops need not wait for an idle connection.
  connection: 'close',
}

/** Writes the reply of a route to the response. Throws what opening a stream throws. */
export async function answer(ctx: Context, reply: Reply): Promise<void> {
  if (reply.trace) ctx.state['trace'] = reply.trace
  if (reply.stream !== undefined) {
    await answerWithStream(ctx, reply.stream)
    return
  }
  ctx.status = reply.status
  ctx.set(reply.headers ?? {})
  if (reply.isSecret === true) ctx.compress = false
  if (reply.status === 204) {
    ctx.body = null
    return
  }
  ctx.body = reply.json ?? JSON.stringify(reply.body)
  ctx.type = 'application/json'
}

/** Opens no stream for HEAD, which gets the headers only. */
async function answerWithStream(ctx: Context, open: () => Promise<Readable>): Promise<void> {
  const stream = ctx.method === 'HEAD' ? null : await open()
  ctx.status = 200
  ctx.set(STREAM_HEADERS)
  // Koa destroys the stream when the connection closes, and the connection when the stream is destroyed.
  if (stream !== null) ctx.body = stream
}
