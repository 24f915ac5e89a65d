import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type Brand, contrast, OWN_BRAND, withBrand } from '../../../../src/http/pages/brand.ts'
import { bundlePages } from '../../../../src/http/pages/bundle-pages.ts'
import { readWebFiles } from '../../../../src/http/pages/web-pages.ts'
import { createTestApi, type TestApi, useApi } from '../../../helpers/api/api.ts'

const LOGO = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>',
)

/** The colours of the themes by their names, light first. */
function themesOf(style: string): Record<string, string>[] {
  return [/^:root \{([^}]*)\}/m, /^:root\[data-theme='dark'\] \{([^}]*)\}/m].map((rule) => {
    const colors = (rule.exec(style)?.[1] ?? '').matchAll(/--([\w-]+): (#\w+);/g)
    return Object.fromEntries([...colors].map(([, name = '', value = '']) => [name, value]))
  })
}

describe('the brand of the pages', () => {
  const suite = useApi()
  const own = readWebFiles()
  let api: TestApi
  before(async () => {
    const brand: Brand = {
      name: 'Zon & <Zee>',
      accentColor: '#b3261e',
      logo: { body: LOGO, extension: 'svg' },
    }
    api = await createTestApi(suite.database.dataSource, { brand })
  })
  after(() => api.close())

  /** What a page names, by its kind. */
  const namedBy = (html: string) => ({
    icon: /<link rel="icon" href="([^"]+)" type="([^"]+)"/.exec(html)?.slice(1),
    style: /<link rel="stylesheet" href="([^"]+)"/.exec(html)?.[1] ?? '',
  })

  it('is that of Posthorn, byte for byte, where nothing is set', () => {
    const folder = fileURLToPath(new URL('../../../../src/web/pages/', import.meta.url))
    const files = bundlePages(folder, { withSourceMaps: false })
    expect(withBrand(files, OWN_BRAND)).to.deep.equal(files)
  })

  it('has its name in every page as text, under the same policy', async () => {
    for (const path of ['/developer', '/docs']) {
      const { text, headers } = await api.call('GET', path)
      expect(text).to.match(/<title>[\w ]+ · Zon &amp; &lt;Zee&gt;<\/title>/)
      expect(text).to.include('<meta name="application-name" content="Zon &amp; &lt;Zee&gt;" />')
      expect(text).to.not.include('Posthorn')
      const { headers: ofOwn } = await suite.api.call('GET', path)
      const policy = headers.get('content-security-policy')
      expect(policy).to.equal(ofOwn.get('content-security-policy')).and.not.include('unsafe')
    }
  })

  it('has its logo under the name of its content, in which no script can run', async () => {
    const { icon } = namedBy((await api.call('GET', '/developer')).text)
    expect(icon?.[0]).to.match(/^\/assets\/bundled\/logo-[\w-]{16}\.svg$/)
    expect(icon?.[1]).to.equal('image/svg+xml')
    const { status, headers, text } = await api.call('GET', icon?.[0] ?? '')
    expect([status, text]).to.deep.equal([200, LOGO.toString()])
    expect(Object.fromEntries(headers)).to.include({
      'content-type': 'image/svg+xml',
      'x-content-type-options': 'nosniff',
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
    })
    expect((await api.call('GET', '/docs')).text).to.include(`href="${icon?.[0] ?? ''}"`)
    expect((await api.call('GET', '/assets/app/push-worker.js')).text).to.include(
      `icon: '${icon?.[0] ?? ''}'`,
    )
  })

  it('serves a PNG as such', () => {
    const body = Buffer.from('89504e470d0a1a0a00ff', 'hex')
    const files = readWebFiles({ ...OWN_BRAND, logo: { body, extension: 'png' } })
    const { icon } = namedBy(files.get('/docs')?.body.toString() ?? '')
    expect(icon?.[1]).to.equal('image/png')
    expect(files.get(icon?.[0] ?? '')).to.deep.include({ body, type: 'image/png' })
  })

  it('has its colour in stylesheets that are named after their content', async () => {
    for (const path of ['/developer', '/docs']) {
      const { style } = namedBy((await api.call('GET', path)).text)
      expect(style).to.match(new RegExp(`^/assets/bundled${path}-[\\w-]{16}\\.css$`))
      expect(own.has(style)).to.equal(false)
      const [light, dark] = themesOf((await api.call('GET', style)).text)
      expect(light?.['accent']).to.equal('#b3261e')
      expect(dark?.['accent'])
        .to.match(/^#[0-9a-f]{6}$/)
        .and.not.equal('#b3261e')
    }
    expect(readWebFiles({ ...OWN_BRAND, name: 'x' }).size).to.equal(own.size)
  })

  it('keeps text legible in every colour, on every background and on the colour itself', () => {
    // WebAIM's examples of what just fails and what just passes.
    expect(contrast('#777777', '#fff')).to.be.within(4.47, 4.48)
    expect(contrast('#767676', '#fff')).to.be.within(4.54, 4.55)
    const digits = ['00', '40', '80', 'c0', 'ff']
    const colors = digits.flatMap((red) =>
      digits.flatMap((green) => digits.map((blue) => `#${red}${green}${blue}`)),
    )
    for (const accentColor of ['', ...colors])
      for (const [path, { body }] of readWebFiles({ ...OWN_BRAND, accentColor })) {
        if (!path.endsWith('.css')) continue
        for (const theme of themesOf(body.toString())) {
          const backgrounds = Object.keys(theme).filter((name) =>
            /(^|-)(back|card|sunk|on-accent)$/.test(name),
          )
          expect(backgrounds).to.have.length(9)
          for (const name of backgrounds)
            expect(contrast(theme['accent']!, theme[name]!), `${accentColor} on ${name}`).to.be.at.least(4.5)
        }
      }
  })
})
