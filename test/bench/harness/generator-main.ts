import { clock } from '../measure/clock.ts'
import type { PublishedEvent, PublishJob } from './generator.ts'
import { serveHarness } from './harness-process.ts'
import { openHttpConnection, type HttpConnection } from './http-connection.ts'
import { publishRequest } from './publish-request.ts'

// The load generator: publishes on request and reports the outcome of each event.

serveHarness(async (job: PublishJob) => {
  const apis = job.apiUrls.map((apiUrl) => openApi(job, apiUrl))
  let turn = 0

  async function publishOne(intendedAt: number | null): Promise<PublishedEvent> {
    const { idle, request, connect } = apis[turn++ % apis.length]!
    const connection = takeUsable(idle) ?? (await connect())
    const sentAt = clock()
    const times = { intendedAt: intendedAt ?? sentAt, sentAt }
    try {
      const { status, body } = await connection.send(request)
      const acknowledgedAt = clock()
      idle.push(connection)
      if (status !== 202) return { ...times, acknowledgedAt, deliveryIds: [], error: `${status} ${body}` }
      const { deliveries } = JSON.parse(body) as { deliveries: { id: string }[] }
      return { ...times, acknowledgedAt, deliveryIds: deliveries.map(({ id }) => id), error: null }
    } catch (error) {
      return { ...times, acknowledgedAt: clock(), deliveryIds: [], error: String(error) }
    }
  }

  const { pace, limit } = job
  const published =
    pace.kind === 'closed'
      ? await closedLoop(pace.concurrency, limit, () => publishOne(null))
      : await openLoop(pace.perSecond, limit, publishOne)
  for (const connection of apis.flatMap(({ idle }) => idle)) connection.close()
  return published
})

/** One process that is published to: the request as it takes it, and connections to it that have nothing to do. */
type Api = { request: Buffer; idle: HttpConnection[]; connect: () => Promise<HttpConnection> }

/** The one used last; those that are of no use any more are closed. */
function takeUsable(idle: HttpConnection[]): HttpConnection | null {
  for (;;) {
    const last = idle.pop()
    if (last === undefined || last.isUsable()) return last ?? null
    last.close()
  }
}

function openApi(job: PublishJob, apiUrl: string): Api {
  const { hostname: host, port } = new URL(apiUrl)
  const connect = () => openHttpConnection({ host, port: Number(port) })
  return { request: publishRequest({ ...job, apiUrl }), idle: [], connect }
}

async function closedLoop(
  concurrency: number,
  limit: PublishJob['limit'],
  publishOne: () => Promise<PublishedEvent>,
): Promise<PublishedEvent[]> {
  const published: PublishedEvent[] = []
  const endsAt = 'durationMs' in limit ? clock() + limit.durationMs : Infinity
  let left = 'events' in limit ? limit.events : Infinity
  async function produce(): Promise<void> {
    while (left > 0 && clock() < endsAt) {
      left -= 1
      published.push(await publishOne())
    }
  }
  await Promise.all(Array.from({ length: concurrency }, produce))
  return published
}

/** Sends on time whatever has become of the events before, on as many connections as that takes. */
async function openLoop(
  perSecond: number,
  limit: PublishJob['limit'],
  publishOne: (intendedAt: number) => Promise<PublishedEvent>,
): Promise<PublishedEvent[]> {
  const gapMs = 1_000 / perSecond
  const events = 'events' in limit ? limit.events : Math.round(limit.durationMs / gapMs)
  const startsAt = clock() + gapMs
  const publishing: Promise<PublishedEvent>[] = []
  await new Promise<void>((resolve) => {
    const sendDue = (): void => {
      for (let due = clock(); publishing.length < events;) {
        const intendedAt = startsAt + publishing.length * gapMs
        if (intendedAt > due) break
        publishing.push(publishOne(intendedAt))
        due = clock()
      }
      if (publishing.length === events) resolve()
      else setTimeout(sendDue, startsAt + publishing.length * gapMs - clock())
    }
    sendDue()
  })
  return Promise.all(publishing)
}
