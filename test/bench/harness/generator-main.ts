import { clock } from '../measure/clock.ts'
import type { AnsweredEvent, PublishJob } from './generator.ts'
import type { PublishRequest } from '../target/adapter.ts'
import { serveHarness } from './harness-process.ts'
import { openHttpConnection, type HttpConnection } from './http-connection.ts'
import { runAtPace } from './pace.ts'

// The load generator: publishes on request and reports the outcome of each event.

serveHarness(async (job: PublishJob) => {
  const apis = job.apiUrls.map((apiUrl) => openApi(job, apiUrl))
  let turn = 0

  async function publishOne(intendedAt: number | null): Promise<AnsweredEvent> {
    const { idle, bytes, connect } = apis[turn++ % apis.length]!
    const connection = takeUsable(idle) ?? (await connect())
    const sentAt = clock()
    const times = { intendedAt: intendedAt ?? sentAt, sentAt }
    try {
      const answer = await connection.send(bytes)
      const acknowledgedAt = clock()
      idle.push(connection)
      return { ...times, acknowledgedAt, answer }
    } catch (error) {
      return { ...times, acknowledgedAt: clock(), answer: String(error) }
    }
  }

  const published = await runAtPace(job.pace, job.limit, publishOne)
  for (const connection of apis.flatMap(({ idle }) => idle)) connection.close()
  return published
})

/** One process that is published to: the request as it takes it, and connections to it that have nothing to do. */
type Api = { bytes: Buffer; idle: HttpConnection[]; connect: () => Promise<HttpConnection> }

/** The one used last; those that are of no use any more are closed. */
function takeUsable(idle: HttpConnection[]): HttpConnection | null {
  for (;;) {
    const last = idle.pop()
    if (last === undefined || last.isUsable()) return last ?? null
    last.close()
  }
}

function openApi(job: PublishJob, apiUrl: string): Api {
  const { hostname, port, host } = new URL(apiUrl)
  const connect = () => openHttpConnection({ host: hostname, port: Number(port || 80) })
  return { bytes: requestBytes(job.request, host), idle: [], connect }
}

/** In one piece, so that sending it is a single write. */
function requestBytes({ path, headers, body }: PublishRequest, host: string): Buffer {
  const lengthBytes = Buffer.byteLength(body)
  const fields = Object.entries({ host, ...headers, 'content-length': lengthBytes })
  const lines = [`POST ${path} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`)
}
