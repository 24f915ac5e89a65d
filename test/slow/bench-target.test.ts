import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { expect } from 'chai'

const run = promisify(execFile)

/** On a busy machine. */
const TIMEOUT_MS = 300_000

/** As an outsider writes one. */
const ADAPTER = `
export const adapter = {
  name: 'Example',
  idHeader: 'x-example-id',
  async createCustomer(url, hookUrl) {
    await fetch(url + '/hook', { method: 'PUT', body: hookUrl })
    return {
      request: (bodyBytes) => ({ path: '/events', headers: {}, body: 'x'.repeat(bodyBytes) }),
      readIds({ status, body }) {
        if (status !== 202) throw new Error(status + ' ' + body)
        return [JSON.parse(body).id]
      },
      remove: () => fetch(url + '/hook', { method: 'DELETE' }),
    }
  },
}`

describe('npm run bench -- --target', () => {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-bench-target-'))
  const adapterFile = join(folder, 'adapter.mjs')
  let server: Server
  let hookUrl = ''
  let published = 0

  async function serve(request: IncomingMessage): Promise<string> {
    const body = await text(request)
    if (request.url === '/hook') {
      hookUrl = body
      return ''
    }
    const id = String(++published)
    // The receiver of the bench may end before the last answer.
    fetch(hookUrl, { method: 'POST', headers: { 'x-example-id': id }, body }).catch(() => undefined)
    return JSON.stringify({ id })
  }

  before(async () => {
    writeFileSync(adapterFile, ADAPTER)
    server = createServer((request, response) => {
      // Without a length, as many products answer.
      void serve(request).then((answer) => response.writeHead(202).end(Buffer.from(answer)))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })

  after(async () => {
    rmSync(folder, { recursive: true })
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })

  async function bench(): Promise<Record<string, unknown>[]> {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const args = [
      '--import',
      'tsx',
      'test/bench/run.ts',
      '--quick',
      '--target',
      url,
      '--adapter',
      adapterFile,
    ]
    const { stdout } = await run(process.execPath, [...args, '--settings', 'version 1'])
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  }

  it('measures any product that has an adapter, in lines of JSON, and removes its customer', async function () {
    this.timeout(TIMEOUT_MS)
    const lines = await bench()
    expect(lines.map(({ kind }) => kind)).to.eql([
      'manifest',
      ...['burst', 'burst', 'burst'],
      ...['latency', 'latency', 'latency'],
      'end',
    ])
    expect(lines[0]).to.deep.include({ product: 'Example', settings: 'version 1' })
    expect(lines.at(-1)).to.deep.include({ problems: [] })
    expect(hookUrl).to.equal('')
  })
})
