import { expect } from 'chai'
import { parseUrl } from '../../../src/domain/text-rules.ts'

describe('a parsed URL', () => {
  it('is the same after many calls, also with letters of Latin-1 in the host name', () => {
    for (let call = 0; call < 20_000; call++) {
      expect(parseUrl('https://bücher.example.com/')?.host).to.equal('xn--bcher-kva.example.com')
    }
  })

  it('is null for what is no URL', () => {
    for (const text of ['', 'example.com', 'https://', 'https://[::1', 'http://a b']) {
      expect(parseUrl(text), text).to.equal(null)
    }
  })
})
