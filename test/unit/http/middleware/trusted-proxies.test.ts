import { expect } from 'chai'
import { createTrustedProxies } from '../../../../src/http/middleware/trusted-proxies.ts'

const proxies = createTrustedProxies(['10.0.0.0/8', '192.0.2.7/32', 'fd00::/16'])

describe('trusted proxies', () => {
  for (const [title, peer, forwardedFor, sender] of [
    ['the peer where it is no trusted proxy', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['the peer where nothing is forwarded', '10.0.0.1', '', '10.0.0.1'],
    ['what a trusted proxy saw', '10.0.0.1', '198.51.100.1', '198.51.100.1'],
    [
      'the first one from the right that is not trusted',
      '10.0.0.1',
      '1.1.1.1, 198.51.100.1, 10.0.0.2',
      '198.51.100.1',
    ],
    ['the left one where all are trusted', '10.0.0.1', '10.3.3.3, 192.0.2.7', '10.3.3.3'],
    ['an address without its port', '192.0.2.7', '198.51.100.1:50123', '198.51.100.1'],
    ['an IPv6 address without brackets and port', 'fd00::1', '[2001:db8::7]:50123', '2001:db8::7'],
    ['what a proxy saw that is shown as IPv4 in IPv6', '::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
    [
      'an address past a trusted one that is IPv4 in IPv6',
      '10.0.0.1',
      '198.51.100.1, ::ffff:10.0.0.2',
      '198.51.100.1',
    ],
    ['the peer where the nearest entry is no address', '10.0.0.1', '198.51.100.1, unknown', '10.0.0.1'],
    ['the peer where an entry behind a trusted one is none', '10.0.0.1', 'x, 10.0.0.2', '10.0.0.1'],
    ['the peer where an entry is empty', '10.0.0.1', '198.51.100.1,', '10.0.0.1'],
    ['the sender, whatever it wrote itself', '10.0.0.1', ',,<script>, 198.51.100.1', '198.51.100.1'],
    ['nothing where the connection is gone', '', '198.51.100.1', ''],
  ] as const)
    it(`identify ${title} as the sender`, () => expect(proxies.senderOf(peer, forwardedFor)).to.equal(sender))

  it('default to none', () => {
    const none = createTrustedProxies([])
    expect(none.has('127.0.0.1')).to.equal(false)
    expect(none.senderOf('127.0.0.1', '198.51.100.1')).to.equal('127.0.0.1')
  })

  it('match by address, whatever the zone or port', () => {
    for (const address of ['10.0.0.1', '10.0.0.1:443', '::ffff:10.0.0.1', 'fd00::1%eth0', '[fd00::1]:443'])
      expect(proxies.has(address), address).to.equal(true)
    for (const address of ['11.0.0.1', '192.0.2.8', 'fd01::1', '', 'localhost', '10.0.0'])
      expect(proxies.has(address), address).to.equal(false)
  })
})
