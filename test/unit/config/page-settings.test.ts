import { expect } from 'chai'
import { loadConfig } from '../../../src/config/load.ts'
import { parseFrameAncestors } from '../../../src/config/parsers.ts'
import { BRAND_SETTINGS } from '../../../src/process/setting-files.ts'

describe('POSTHORN_FRAME_ANCESTORS', () => {
  it('holds origins', () => {
    expect(parseFrameAncestors('')).to.deep.equal([])
    expect(parseFrameAncestors('https://app.example.com, https://b.example:8443')).to.deep.equal([
      'https://app.example.com',
      'https://b.example:8443',
    ])
  })

  it('holds plain http on loopback only', () => {
    const origins = [
      'http://localhost:5173',
      'http://app.localhost',
      'http://127.0.0.1:8080',
      'http://[::1]:80',
    ]
    for (const origin of origins.slice(0, 3)) expect(parseFrameAncestors(origin)).to.deep.equal([origin])
    for (const text of ['http://app.example.com', 'http://10.0.0.1', 'http://localhost.example.com'])
      expect(() => parseFrameAncestors(text), text).to.throw('number 1')
  })

  for (const text of [
    '*',
    "'self'",
    "'none'",
    'null',
    'https:',
    'https://',
    'https://*.example.com',
    'https://app.example.com/',
    'https://app.example.com/path',
    'https://app.example.com?x',
    'https://app.example.com:443',
    'https://APP.example.com',
    'https://user@app.example.com',
    'https://app.example.com; script-src *',
    'https://app.example.com https://evil.example',
    'ftp://app.example.com',
    'app.example.com',
    'data:text/html,x',
    ',',
  ])
    it(`refuses ${text}`, () => {
      expect(() => parseFrameAncestors(text)).to.throw(/number 1/)
    })

  it('names the entries that are wrong by their number, without repeating them', () => {
    const text = 'https://a.example,hunter2,https://b.example,*'
    expect(() => parseFrameAncestors(text)).to.throw(/number 2, 4$/)
  })
})

describe('the settings of the brand', () => {
  const load = (env: Record<string, string>) => loadConfig(env, BRAND_SETTINGS)

  it('are those of Posthorn by default', () => {
    expect(load({})).to.deep.equal({ brandName: 'Posthorn', brandLogoFile: '', brandAccentColor: '' })
  })

  it('take a name in any script, and a colour of six digits', () => {
    const env = { BRAND_NAME: ' Zon & Zee 日本 ', BRAND_ACCENT_COLOR: '#B3261E' }
    expect(load(env)).to.include({ brandName: 'Zon & Zee 日本', brandAccentColor: '#b3261e' })
  })

  it('refuse every other name and colour, by the variable', () => {
    for (const name of ['x'.repeat(41), 'a\nb', 'a\u202eb', 'a\0b'])
      expect(() => load({ BRAND_NAME: name })).to.throw('BRAND_NAME must be plain text')
    for (const color of ['red', '#fff', '#0b57d0ff', '0b57d0', '#0b57dg', '#0b57d0;} *{display:none'])
      expect(() => load({ BRAND_ACCENT_COLOR: color })).to.throw('BRAND_ACCENT_COLOR must be a colour')
  })
})
