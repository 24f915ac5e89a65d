import type { Readable } from 'node:stream'
import type { Context } from 'koa'
import { NDJSON } from './export-rows.ts'

/** Keeps proxies from storing, compressing or buffering the stream. */
const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
  // The client reconnects after a stream, and a process that stops need not wait for an idle connection.
  connection: 'close',
}

/** Opens no stream for HEAD, which gets the headers only. */
export async function answerWithStream(ctx: Context, open: () => Promise<Readable>): Promise<void> {
  const stream = ctx.method === 'HEAD' ? null : await open()
  ctx.status = 200
  ctx.set(STREAM_HEADERS)
  // Koa destroys the stream when the connection closes, and the connection when the stream is destroyed.
  if (stream !== null) ctx.body = stream
}

/** Answers with rows as they come: compression would hold them back to the end. */
export function answerWithRows(ctx: Context, rows: Readable): void {
  ctx.set({ 'content-type': NDJSON, 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' })
  ctx.body = rows
}
