import { expect } from 'chai'
import { createAddressGuard, parseCidr } from '../../../src/outbound/address-guard.ts'

// Every row of IANA's special-purpose registries (2025-10-09). Compare them with the registries once a year.
const IPV4_REGISTRY = [
  ...['0.0.0.0/8', '0.0.0.0/32', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.0.0.0/29', '192.0.0.8/32', '192.0.0.9/32', '192.0.0.10/32'],
  ...['192.0.0.170/32', '192.0.0.171/32', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24'],
  ...['192.88.99.0/24', '192.88.99.2/32', '192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '240.0.0.0/4', '255.255.255.255/32'],
]
const IPV6_REGISTRY = [
  ...['::1/128', '::/128', '::ffff:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '100::/64', '100:0:0:1::/64'],
  ...[
    '2001::/23',
    '2001::/32',
    '2001:1::1/128',
    '2001:1::2/128',
    '2001:1::3/128',
    '2001:2::/48',
    '2001:3::/32',
  ],
  ...['2001:4:112::/48', '2001:10::/28', '2001:20::/28', '2001:30::/28', '2001:db8::/32', '2002::/16'],
  ...['2620:4f:8000::/48', '3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10'],
]

const OTHER_BLOCKED = [
  ...['224.0.0.1', '239.255.255.255', '168.63.129.16', '169.254.169.254', '169.254.170.2', '100.100.100.200'],
  ...[
    '192.0.0.192',
    'fd00:ec2::254',
    'fec0::1',
    'ff02::1',
    '::7f00:1',
    '::ffff:0:127.0.0.1',
    '4000::1',
    '1fff::1',
  ],
  ...['::ffff:808', '::808:808', '::ffff:0:808:808'],
  ...['::ffff:127.0.0.1', '::ffff:7f00:1', '::FFFF:7F00:0001', '0:0:0:0:0:ffff:10.0.0.1', '64:ff9b::8.8.8.8'],
  ...[
    'fe80::1%lo',
    '2606:4700::1%eth0',
    '8.8.8.8%1',
    '',
    ' ',
    'localhost',
    '8.8.8',
    '8.8.8.8 ',
    '0x08080808',
  ],
  ...['08.8.8.8', '256.1.1.1', '[2606:4700::1]', '2606:4700:::1', 'null', '8.8.8.8/32', '8.8.8.8\u0000'],
]

const PUBLIC = [
  ...['8.8.8.8', '1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255'],
  ...['128.0.0.1', '169.253.255.255', '172.15.255.255', '172.32.0.0', '192.0.1.0', '192.167.255.255'],
  ...['198.17.255.255', '198.20.0.0', '223.255.255.255', '168.63.129.15', '::ffff:8.8.8.8', '::ffff:808:808'],
  ...[
    '2606:4700::6810:1',
    '2001:200::1',
    '2001:4860:4860::8888',
    '2003::1',
    '2a00::1',
    '3ffe::1',
    '2620:4f:8001::1',
  ],
]

/** First and last address of a network, in full hexadecimal or dotted form. */
function edgesOf(cidr: string): string[] {
  const { address, prefix, family } = parseCidr(cidr) ?? {
    address: cidr.split('/')[0]!,
    prefix: 96,
    family: 'ipv6',
  }
  if (family === 'ipv4') {
    const first = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
    return [first, first + 2 ** (32 - prefix) - 1].map((value) =>
      [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.'),
    )
  }
  const [head = '', tail = ''] = address.split('::')
  const words = [head, tail].map((part) => part.split(':').filter((word) => word !== ''))
  const zeros = Array<string>(8 - words.flat().length).fill('0')
  const all = [...words[0]!, ...(address.includes('::') ? zeros : []), ...words[1]!]
  const first = BigInt(`0x${all.map((word) => word.padStart(4, '0')).join('')}`)
  return [first, first + (1n << BigInt(128 - prefix)) - 1n].map((value) =>
    value.toString(16).padStart(32, '0').match(/.{4}/g)!.join(':'),
  )
}

describe('createAddressGuard', () => {
  const strict = createAddressGuard({ allowedCidrs: [] })

  for (const cidr of [...IPV4_REGISTRY, ...IPV6_REGISTRY]) {
    it(`blocks both ends of ${cidr}`, () => {
      for (const address of edgesOf(cidr)) expect(strict.isBlocked(address), address).to.equal(true)
    })
  }

  it('blocks IPv4-mapped spellings of every blocked IPv4 network', () => {
    for (const address of IPV4_REGISTRY.flatMap(edgesOf)) {
      expect(strict.isBlocked(`::ffff:${address}`), address).to.equal(true)
    }
  })

  for (const address of OTHER_BLOCKED) {
    it(`blocks ${JSON.stringify(address)}`, () => {
      expect(strict.isBlocked(address)).to.equal(true)
    })
  }

  for (const address of PUBLIC) {
    it(`lets ${address} through`, () => {
      expect(strict.isBlocked(address)).to.equal(false)
    })
  }

  it('permits exactly the allowed networks', () => {
    const guard = createAddressGuard({ allowedCidrs: ['127.0.0.0/8', 'fd00::/8', '10.1.2.3/32'] })
    const open = ['127.0.0.1', '127.255.255.255', '::ffff:127.0.0.1', '::ffff:a01:203', 'fd12::1', '10.1.2.3']
    const closed = [
      '10.1.2.4',
      '::1',
      'fc00::1',
      '192.168.0.1',
      '::ffff:10.1.2.4',
      'fd12::1%eth0',
      '169.254.169.254',
    ]
    for (const address of open) expect(guard.isBlocked(address), address).to.equal(false)
    for (const address of closed) expect(guard.isBlocked(address), address).to.equal(true)
  })

  it('permits in a NAT64 network only addresses that embed a permitted IPv4 address', () => {
    const guard = createAddressGuard({ allowedCidrs: ['64:ff9b::/96', '10.1.2.3/32'] })
    const open = ['64:ff9b::8.8.8.8', '64:ff9b::808:808', '64:ff9b::a01:203', '64:FF9B:0:0:0:0:0808:0808']
    const closed = ['64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '64:ff9b::1', '64:ff9b::', '64:ff9b::a01:204']
    for (const address of open) expect(guard.isBlocked(address), address).to.equal(false)
    for (const address of [...closed, '64:ff9b:1::808:808']) {
      expect(guard.isBlocked(address), address).to.equal(true)
    }
  })

  it('throws for a network that cannot be parsed', () => {
    for (const cidr of ['0.0.0.0/0', '::/0', 'localhost', '10.0.0.0']) {
      expect(() => createAddressGuard({ allowedCidrs: [cidr] }), cidr).to.throw(cidr)
    }
  })
})

describe('parseCidr', () => {
  it('parses a network of each family', () => {
    expect(parseCidr('127.0.0.0/8')).to.deep.equal({ address: '127.0.0.0', prefix: 8, family: 'ipv4' })
    expect(parseCidr('FD00::/8')).to.deep.equal({ address: 'FD00::', prefix: 8, family: 'ipv6' })
    expect(parseCidr('::1/128')).to.deep.equal({ address: '::1', prefix: 128, family: 'ipv6' })
  })

  it('returns null for everything else', () => {
    const bad = [
      ...[
        '',
        '/',
        '/8',
        '127.0.0.1',
        '127.0.0.0/',
        '127.0.0.0/33',
        '127.0.0.0/08',
        '127.0.0.0/-1',
        '127.0.0.0/8 ',
      ],
      ...[
        '127.0.0/8',
        '::1/129',
        'fe80::1%lo/64',
        '[::1]/128',
        'localhost/8',
        '0.0.0.0/0',
        '::/0',
        '10.0.0.0/0',
      ],
      ...['::ffff:10.0.0.0/104', '::ffff:a00:0/104', '10.0.0.0/8/8', '1e1.0.0.0/8', ':::/8', '10.0.0.0/1e1'],
    ]
    for (const text of bad) expect(parseCidr(text), text).to.equal(null)
  })
})
