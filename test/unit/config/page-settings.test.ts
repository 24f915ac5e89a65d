import { expect } from 'chai'
import { parseFrameAncestors } from '../../../src/config/parsers.ts'

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
