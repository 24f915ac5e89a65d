import { expect } from 'chai'
import { senderNetwork } from '../../../../src/http/middleware/trusted-proxies.ts'

describe('senderNetwork', () => {
  for (const [address, network] of [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:50123', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]:50123', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:1::', '2001:db8:0:0::/64'],
    ['1::3:4:5:6:7:8', '1:0:3:4::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
    ['64:ff9b::203.0.113.7', '64:ff9b:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ] as const) {
    it(`maps ${address} to ${network}`, () => expect(senderNetwork(address)).to.equal(network))
  }

  it('distinguishes IPv4 senders on a dual-stack socket', () => {
    const [one, other] = ['::ffff:203.0.113.7', '::ffff:203.0.113.8'].map(senderNetwork)
    expect(one).to.not.equal(other)
    expect(senderNetwork('::FFFF:cb00:7107')).to.equal(one)
  })

  it('returns a text that is not an address unchanged', () => {
    for (const text of ['', 'unknown', '_hidden', '1.2.3', '[', '[]', 'x'.repeat(10_000)])
      expect(() => senderNetwork(text), text).to.not.throw()
    expect(senderNetwork('unknown')).to.equal('unknown')
  })
})
