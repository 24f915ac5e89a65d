import { connect, createServer, type ServerHttp2Stream, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'

/** `PERMISSION_DENIED` of gRPC. */
const PERMISSION_DENIED = '7'

/** A relay in front of Temporal that passes on every call but those it was told to refuse. */
export type GrpcRelay = {
  /** host:port */
  address: string
  /** The paths of the refused calls so far. */
  refused: string[]
  close(): Promise<void>
}

/** Starts a relay that refuses each call for whose path `isRefused` is true with PERMISSION_DENIED. */
export async function startGrpcRelay(
  target: string,
  isRefused: (path: string) => boolean,
): Promise<GrpcRelay> {
  const upstream = connect(`http://${target}`)
  upstream.on('error', () => undefined)
  const refused: string[] = []
  const server = createServer()
  server.on('sessionError', () => undefined)
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined)
    const path = headers[':path'] ?? ''
    if (isRefused(path)) {
      refused.push(path)
      stream.respond(
        {
          ':status': 200,
          'content-type': 'application/grpc',
          'grpc-status': PERMISSION_DENIED,
          'grpc-message': 'not allowed',
        },
        { endStream: true },
      )
    } else pass(stream, headers)
  })

  function pass(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const call = upstream.request({ ...headers, ':authority': target })
    call.on('error', () => stream.destroy())
    stream.on('close', () => call.destroy())
    let trailers: IncomingHttpHeaders = {}
    call.on('trailers', (received: IncomingHttpHeaders) => {
      trailers = received
    })
    call.on('response', (answer: IncomingHttpHeaders, flags: number) => {
      const isWhole = (flags & 1) === 1
      stream.respond({ ...answer }, { endStream: isWhole, waitForTrailers: !isWhole })
      stream.on('wantTrailers', () => stream.sendTrailers(trailers))
      call.pipe(stream)
    })
    stream.pipe(call)
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    refused,
    async close() {
      upstream.destroy()
      for (const session of sessions) session.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
