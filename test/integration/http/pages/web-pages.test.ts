import { expect } from 'chai'
import { readWebFiles } from '../../../../src/http/pages/web-pages.ts'
import { sendRaw } from '../../../helpers/api/raw-request.ts'
import { useApi } from '../../../helpers/api/api.ts'

describe('the pages of the product', () => {
  const suite = useApi()
  const files = readWebFiles()

  it('are served at /developer and /docs without a key', async () => {
    for (const path of ['/developer', '/docs', '/developer?webhook=x']) {
      const { status, headers, text } = await suite.api.call('GET', path)
      expect([status, headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8'])
      expect(text).to.match(/^<!doctype html>/)
    }
  })

  it('contain nothing inline and nothing from other hosts, by policy and in fact', async () => {
    for (const path of ['/developer', '/docs']) {
      const { headers, text } = await suite.api.call('GET', path)
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).to.match(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/)
      expect(policy).to.include("frame-ancestors 'none'").and.include("require-trusted-types-for 'script'")
      expect(policy).to.not.include('unsafe').and.not.include('http')
      expect(text).to.not.match(/<style|<script(?![^>]* src=)| on\w+=| style=|https?:/)
    }
  })

  it('find every file that they and their scripts name', () => {
    for (const [path, { body, type }] of files) {
      // A source map holds the sources.
      if (type === 'application/json') continue
      const text = body.toString('utf8')
      const named = [
        ...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g),
        ...text.matchAll(/(?:from|import) ?['"]([./][^'"]+\.js)['"]/g),
      ]
      for (const [, target = ''] of named)
        expect(files.has(new URL(target, `http://x${path}`).pathname), `${path}: ${target}`).to.equal(true)
    }
  })

  it('are cached while they are unchanged', async () => {
    for (const path of files.keys()) {
      const { headers } = await suite.api.call('GET', path)
      const etag = headers.get('etag') ?? ''
      // `fetch` asks for a fresh copy once it is given a condition.
      const again = await sendRaw(suite.api.url, { method: 'GET', path, headers: { 'if-none-match': etag } })
      expect([again.status, again.text], path).to.deep.equal([304, ''])
    }
  })

  it('name scripts and styles after their content, which caches keep for good', async () => {
    const named = [...files.keys()].filter(
      (path) => /\.(js|css)$/.test(path) && !path.includes('push-worker'),
    )
    expect(named).to.have.length(7)
    for (const path of named) {
      const { headers } = await suite.api.call('GET', path)
      expect(path).to.match(
        /^\/assets\/bundled\/(app-main|app-theme|developer|docs-main|docs|operator-main|operator)-[\w-]{16}\.(js|css)$/,
      )
      expect(headers.get('cache-control')).to.equal('public, max-age=31536000, immutable')
    }
    for (const path of ['/developer', '/docs', '/assets/app/push-worker.js'])
      expect((await suite.api.call('GET', path)).headers.get('cache-control'), path).to.equal('no-cache')
  })

  it('are found from /, which leads to the developer area', async () => {
    const { url } = suite.api
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await fetch(`${url}/`, { method, redirect: 'manual' })
      expect([status, headers.get('location')]).to.deep.equal([303, '/developer'])
    }
    const { status, headers } = await suite.api.call('POST', '/')
    expect([status, headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
  })

  it('leave a path that is none to a 404 that says where the API begins', async () => {
    // The mailbox is there in development only.
    for (const path of ['/nothing', '/api', '/api/orgs', '/index.html', '/dev/mailbox']) {
      const { status, json } = await suite.api.call('GET', path)
      expect([status, (json as { detail: string }).detail], path).to.deep.equal([
        404,
        'No such path. The API begins at /api/orgs/:orgId; /docs describes it.',
      ])
    }
  })

  it('answer GET and HEAD only, and no path that is not theirs', async () => {
    expect((await suite.api.call('HEAD', '/developer')).status).to.equal(200)
    const { status, headers } = await suite.api.call('POST', '/developer')
    expect([status, headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
    for (const path of ['/developer/', '/assets/', '/assets/tsconfig.json', '/assets/..%2f..%2fsettings.ts'])
      expect((await suite.api.call('GET', path)).status, path).to.equal(404)
  })
})
