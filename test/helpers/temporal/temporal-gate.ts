import { once } from 'node:events'
import {
  connect,
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { testServers } from '../runner/servers.ts'

/** A proxy in front of Temporal that permits only some calls, as one with authorisation does. */
export type TemporalGate = { address: string; close(): Promise<void> }

/** PERMISSION_DENIED of gRPC. */
const REFUSAL = {
  ':status': 200,
  'content-type': 'application/grpc',
  'grpc-status': '7',
  'grpc-message': 'Request unauthorized.',
}

/** `refused`: names of calls, such as `DescribeNamespace`. */
export async function createTemporalGate(refused: readonly string[]): Promise<TemporalGate> {
  const upstream = connect(`http://${testServers().temporalAddress}`)
  upstream.on('error', () => undefined)
  const sessions = new Set<Http2Session>()
  const server = createServer()
  server.on('error', () => undefined)
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => undefined).on('close', () => sessions.delete(session))
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined)
    const call = (headers[':path'] ?? '').replace(/^.*\//, '')
    if (refused.includes(call)) stream.respond(REFUSAL, { endStream: true })
    else forward(stream, headers)
  })

  function forward(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const request = upstream.request(headers)
    let trailers: IncomingHttpHeaders = {}
    request.on('error', () => stream.destroy())
    request.on('response', (answer) => {
      if (stream.destroyed) return
      // An error without a message has nothing after its headers.
      const isComplete = 'grpc-status' in answer
      stream.respond(answer, isComplete ? { endStream: true } : { waitForTrailers: true })
      if (!isComplete) request.pipe(stream)
    })
    request.on('trailers', (given: IncomingHttpHeaders) => {
      trailers = given
    })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.on('close', () => request.destroy())
    stream.pipe(request)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const session of [...sessions, upstream]) session.destroy()
      await closed
    },
  }
}
