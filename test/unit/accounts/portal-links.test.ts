import { expect } from 'chai'
import { developerAddress } from '../../../src/accounts/one-use-tokens.ts'

const ID = '019a0000-0000-7000-8000-00000000000a'

describe('the path of a portal link', () => {
  it('names a page of the developer area', () => {
    expect(developerAddress('/')).to.equal('/developer')
    expect(developerAddress('/webhooks')).to.equal('/developer')
    expect(developerAddress(`/webhooks/${ID}`)).to.equal(`/developer?webhook=${ID}`)
    expect(developerAddress(`/webhooks/${ID}/deliveries/${ID}`)).to.equal(
      `/developer?webhook=${ID}&delivery=${ID}`,
    )
  })

  it('names ids in either case, and leads to them in lower case', () => {
    expect(developerAddress(`/webhooks/${ID.toUpperCase()}/deliveries/${ID}`)).to.equal(
      `/developer?webhook=${ID}&delivery=${ID}`,
    )
  })

  for (const path of [
    '',
    'webhooks',
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/../docs',
    '/webhooks/../../docs',
    '/webhooks/..',
    '/%2e%2e/docs',
    '/webhooks/%2e%2e/%2e%2e/docs',
    '/webhooks%2f..%2f..',
    'https://evil.example/',
    'javascript:alert(1)',
    '/javascript:alert(1)',
    '//webhooks',
    '/webhooks/',
    '/webhooks?x=1',
    '/webhooks#x',
    '/webhooks\n',
    '/webhooks/\t',
    ' /webhooks',
    `/webhooks/${ID}/`,
    `/webhooks/${ID}/deliveries`,
    '/webhooks/\u0000',
  ])
    it(`is refused when it is ${JSON.stringify(path)}`, () => {
      expect(developerAddress(path)).to.equal(null)
    })
})
