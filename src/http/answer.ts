import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import type { Reply } from './route.ts'

/** Nothing between us and the client may keep, pack or collect what it is to have at once. */
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
  // Once a stream is over the client comes back later; a process that stops need not wait for the connection.
  connection: 'close',
}

/** Gives the reply of a route to the client. Throws what opening a stream throws. */
export async function answer(ctx: Context, reply: Reply): Promise<void> {
  if (reply.stream !== undefined) {
    await answerWithStream(ctx, reply.stream)
    return
  }
  ctx.status = reply.status
  ctx.set(reply.headers ?? {})
  if (reply.status === 204) {
    ctx.body = null
    return
  }
  ctx.body = reply.json ?? JSON.stringify(reply.body)
  ctx.type = 'application/json'
}

/** HEAD gets the headers, and no stream is opened for it. */
async function answerWithStream(ctx: Context, open: () => Promise<Readable>): Promise<void> {
  const stream = ctx.method === 'HEAD' ? null : await open()
  ctx.status = 200
  ctx.set(STREAM_HEADERS)
  // Koa destroys the stream when the connection closes, and the connection when the stream is destroyed.
  if (stream !== null) ctx.body = stream
}
