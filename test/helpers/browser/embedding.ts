import { createServer as createHttps, type Server } from 'node:https'
import { request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createCertificate } from '../receivers/receiver.ts'

/** Names below `.test`, which the browser of the tests looks up as this machine. */
export type Embedding = {
  /** Posthorn behind a proxy with TLS, once `forwardTo` was called. */
  hooks: string
  /** Two sites with pages that embed what their parameter `url` names. */
  platform: string
  stranger: string
  forwardTo(url: string): void
  close(): Promise<void>
}

/** Serves Posthorn and pages of two other sites over https. */
export async function createEmbedding(): Promise<Embedding> {
  const certificate = await createCertificate()
  let target = ''
  const proxy = createHttps(certificate, (incoming, outgoing) => forward(target, incoming, outgoing))
  const pages = createHttps(certificate, (incoming, outgoing) => {
    const embedded = new URL(incoming.url ?? '/', 'https://x').searchParams.get('url') ?? ''
    outgoing.setHeader('content-type', 'text/html')
    const source = embedded.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
    outgoing.end(
      `<!doctype html><title>Embeds</title><h1>Embeds</h1><iframe src="${source}" width="1000" height="700"></iframe>`,
    )
  })
  const [proxyPort, pagesPort] = await Promise.all([portOf(proxy), portOf(pages)])
  return {
    hooks: `https://hooks.test:${proxyPort}`,
    platform: `https://platform.test:${pagesPort}`,
    stranger: `https://stranger.test:${pagesPort}`,
    forwardTo(url) {
      target = url
    },
    async close() {
      await Promise.all([proxy, pages].map(closeServer))
    },
  }
}

/** Passes a request on with its headers as they came, as production.md asks of a proxy. */
function forward(target: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, headers, url } = incoming
  const passed = request(new URL(url ?? '/', target), { method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(outgoing)
  })
  passed.on('error', () => outgoing.destroy())
  incoming.pipe(passed)
}

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
