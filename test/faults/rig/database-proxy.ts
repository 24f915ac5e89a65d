import { createTcpProxy, type TcpProxy } from './tcp-proxy.ts'

/** A proxy in front of PostgreSQL, and the address of the same database behind it. */
export async function createDatabaseProxy(databaseUrl: string): Promise<TcpProxy & { url: string }> {
  const url = new URL(databaseUrl)
  const proxy = await createTcpProxy({ host: url.hostname, port: Number(url.port) })
  url.hostname = '127.0.0.1'
  url.port = String(proxy.port)
  return { ...proxy, url: url.href }
}
