import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { createMember, publishRow, type TestMember } from '../helpers/database/factories.ts'
import { useApi } from '../helpers/api/api.ts'
import { testServers } from '../helpers/runner/servers.ts'

const { chromium } = testServers()

describe('docs/stream/browser.mjs in a real browser', () => {
  if (chromium === null) {
    it.skip('NOT CHECKED: there is no Chromium')
    return
  }
  const suite = useApi()

  it('shows each event, and continues without a gap after its stream ended', async () => {
    const { dataSource } = suite.database
    const member = await createMember(dataSource)
    const site = await serveSite(suite.api.url, member)
    const profile = await mkdtemp(join(tmpdir(), 'posthorn-browser-'))
    const flags = [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--no-first-run',
      `--user-data-dir=${profile}`,
    ]
    const browser = spawn(chromium, [...flags, site.url], { stdio: 'ignore' })
    await eventually(() => expect(site.streams()).to.equal(1), 60_000)
    await publishRow(dataSource, member.organisationId)
    await eventually(() => expect(site.seen).to.have.length(1))
    // A change of rights ends the stream; what is published meanwhile comes with the next one.
    await dataSource.query(
      `UPDATE member SET full_access = false, permissions = '{customer:read}' WHERE id = $1`,
      [member.memberId],
    )
    await eventually(() => expect(site.ended()).to.equal(1))
    await publishRow(dataSource, member.organisationId)
    await eventually(() => expect(site.streams()).to.equal(2))
    await publishRow(dataSource, member.organisationId)
    const stored = await dataSource.query<{ id: string; body: Buffer }[]>(
      'SELECT id, body FROM event WHERE organisation_id = $1 ORDER BY sequence',
      [member.organisationId],
    )
    const expected = stored.map(({ id, body }) => `${id} ${body.toString()}`)
    await eventually(() => expect(site.seen).to.deep.equal(expected))
    const exited = once(browser, 'exit')
    browser.kill()
    await exited
    await site.close()
    await rm(profile, { recursive: true, force: true })
  })
})

/** A customer's site: its page, its tickets, and a proxy before Posthorn, all of one origin. */
async function serveSite(apiUrl: string, member: TestMember) {
  const stream = `/api/orgs/${member.organisationId}/events/stream`
  const sample = readFileSync(new URL('../../docs/stream/browser.mjs', import.meta.url))
  const seen: string[] = []
  let streams = 0
  let ended = 0
  const page = `<!doctype html><script type="module">
    import { followEvents } from '/browser.mjs'
    followEvents({
      streamUrl: new URL('${stream}', location.href),
      events: ['customer:created'],
      pauseMs: 500,
      getTicket: async () => (await fetch('/ticket', { method: 'POST' })).text(),
      onEvent: (key, envelope, id) => fetch('/seen', { method: 'POST', body: id + ' ' + JSON.stringify(envelope) }),
      onGap: () => fetch('/seen', { method: 'POST', body: 'gap' }),
    })
  </script>`

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '/' } = incoming
    if (url.startsWith('/api/')) {
      const proxied = request(new URL(url, apiUrl), (from) => {
        streams++
        response.writeHead(from.statusCode ?? 500, from.headers)
        from.pipe(response).on('close', () => ended++)
      })
      response.on('close', () => proxied.destroy())
      proxied.on('error', () => response.destroy()).end()
      return
    }
    if (url === '/browser.mjs') response.writeHead(200, { 'content-type': 'text/javascript' }).end(sample)
    else if (url === '/ticket') {
      const headers = { 'x-api-key': member.apiKey }
      const issued = await fetch(`${apiUrl}${stream}-tickets`, { method: 'POST', headers })
      response.end(((await issued.json()) as { ticket: string }).ticket)
    } else if (url === '/seen') {
      let text = ''
      for await (const chunk of incoming) text += String(chunk)
      seen.push(text)
      response.end()
    } else response.writeHead(200, { 'content-type': 'text/html' }).end(url === '/' ? page : '')
  }

  const server = createServer((incoming, response) => void answer(incoming, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    seen,
    streams: () => streams,
    ended: () => ended,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
