import type { FailureCode } from '../../../src/domain/attempt-outcome.ts'
import type { Zone } from '../../integration/outbound/dns-server.ts'

/**
 * A URL and what has to become of a POST to it. `registers`: whether a webhook may have it. `policy`: whether plain
 * http is open; private networks never are.
 */
export type Target = {
  url: string
  outcome: FailureCode | 'delivered'
  registers: boolean
  policy: 'strict' | 'http'
}

/** The only addresses of the rig that anything may be sent to. All others are this machine as well, and listen. */
export const PUBLIC_ADDRESSES: readonly string[] = ['93.184.216.34', '93.184.216.35', '2606:4700::6810:1']
const [PUBLIC = '', PUBLIC_TOO = '', PUBLIC_SIX = ''] = PUBLIC_ADDRESSES

/**
 * Ports that something listens on, at every address: those of the receivers, and of servers in private networks.
 */
export const TLS_PORTS: readonly number[] = [443, 8443]
export const PLAIN_PORTS: readonly number[] = [80, 8080, 2375, 5432, 6379, 7233, 9200]

/** Loopback, private networks and metadata services, in every spelling that a URL knows. */
const PRIVATE_HOSTS: readonly string[] = [
  ...['127.0.0.1', '127.1', '127.0.1', '127.255.255.254', '127.0.0.1.', '0x7f.1', '0x7f000001', '0X7F.0.0.1'],
  ...['2130706433', '017700000001', '0177.0.0.1', '0', '0.0.0.0', '0.1.2.3', '00', '0x0'],
  ...['１２７.０.０.１', '①②⑦.⓪.⓪.①', '127。0。0。1', '127．0．0．1', '%31%32%37.0.0.1', '127%2e0.0.1'],
  ...[
    '10.0.0.1',
    '10.255.255.255',
    '167772161',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '192.168.257',
  ],
  ...['169.254.169.254', '0xa9fea9fe', '2852039166', '0251.0376.0251.0376', '169.254.170.2', '169.254.0.1'],
  ...['100.64.0.1', '100.127.255.255', '100.100.100.200', '192.0.0.192', '192.0.0.8', '168.63.129.16'],
  ...[
    '192.0.2.1',
    '192.31.196.1',
    '192.52.193.1',
    '192.88.99.1',
    '192.175.48.1',
    '198.18.0.1',
    '198.19.255.255',
  ],
  ...['198.51.100.1', '203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::127.0.0.1]', '[::ffff:0:127.0.0.1]'],
  ...[
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[0:0:0:0:0:FFFF:127.0.0.1]',
    '[::ffff:a9fe:a9fe]',
    '[::ffff:0:0]',
  ],
  ...['[::ffff:10.0.0.1]', '[::ffff:192.168.0.1]', '[::ffff:168.63.129.16]', '[::ffff:100.100.100.200]'],
  ...['[64:ff9b::7f00:1]', '[64:ff9b::169.254.169.254]', '[64:ff9b::8.8.8.8]', '[64:ff9b:1::a9fe:a9fe]'],
  ...['[2002:7f00:1::1]', '[2002:a9fe:a9fe::1]', '[2002:5db8:d822::1]', '[2001::1]', '[2001:0:7f00:1::1]'],
  ...['[2001:2::1]', '[2001:10::1]', '[2001:20::1]', '[2001:30::1]', '[2001:db8::1]', '[2001:1ff::1]'],
  ...['[2620:4f:8000::1]', '[3fff::1]', '[5f00::1]', '[100::1]', '[100:0:0:1::1]', '[4000::1]', '[1fff::1]'],
  ...['[fc00::1]', '[fd00:ec2::254]', '[fd12:3456::1]', '[fe80::1]', '[fe80::a9fe:a9fe]', '[fec0::1]'],
  ...['[ff02::1]', '[ff0e::1]', 'localhost', 'LocalHost', 'localhost.', 'app.localhost'],
]

/** Whole URLs that mean something else than they seem to, as they would reach the client if they were ever stored. */
const DECEPTIVE: readonly string[] = [
  ...[`https://${PUBLIC}@10.0.0.1/`, 'https://user:pass@169.254.169.254/', `https://10.0.0.1#@${PUBLIC}/`],
  ...[`https://10.0.0.1\\@${PUBLIC}/`, 'https:10.0.0.1/', 'https:///10.0.0.1/', 'https:\\\\10.0.0.1\\'],
  ...['\thttps://127.0.0.1/', 'https://127.0.0\n.1/', 'ht\ntps://127.0.0.1/', ' https://[::1]/ '],
  ...['https://127.0.0.1:5432/', 'https://10.0.0.1:8443/', 'https://[::1]:6379/', 'https://localhost:7233/'],
  ...[
    'http://127.0.0.1/',
    `http://${PUBLIC}/`,
    'HTTP://169.254.169.254/latest/meta-data/',
    'ftp://127.0.0.1:2375/',
  ],
  ...['ws://127.0.0.1:9200/', 'wss://127.0.0.1/', 'gopher://127.0.0.1:6379/_'],
]

const LOOPBACK_SIX = '::1'
const LIKE_PUBLIC = Array.from({ length: 12 }, () => PUBLIC)

/** Names whose addresses, or one of them, are private. */
const PRIVATE_NAMES: Zone = {
  'loopback.rig.eu': { a: ['127.0.0.1'] },
  'ten.rig.eu': { a: ['10.0.0.1'] },
  'metadata.rig.eu': { a: ['169.254.169.254'] },
  'cgnat.rig.eu': { a: ['100.100.100.200'] },
  'zero.rig.eu': { a: ['0.0.0.0'] },
  'azure.rig.eu': { a: ['168.63.129.16'] },
  'loopback-six.rig.eu': { aaaa: [LOOPBACK_SIX] },
  'unspecified-six.rig.eu': { aaaa: ['::'] },
  'mapped.rig.eu': { aaaa: ['::ffff:127.0.0.1'] },
  'mapped-metadata.rig.eu': { aaaa: ['::ffff:169.254.169.254'] },
  'compatible.rig.eu': { aaaa: ['::127.0.0.1'] },
  'translated.rig.eu': { aaaa: ['::ffff:0:127.0.0.1'] },
  'nat64.rig.eu': { aaaa: ['64:ff9b::a9fe:a9fe'] },
  'nat64-local.rig.eu': { aaaa: ['64:ff9b:1::a9fe:a9fe'] },
  'six-to-four.rig.eu': { aaaa: ['2002:a9fe:a9fe::1'] },
  'teredo.rig.eu': { aaaa: ['2001:0:7f00:1::1'] },
  'unique-local.rig.eu': { aaaa: ['fd00:ec2::254'] },
  'link-local.rig.eu': { aaaa: ['fe80::1'] },
  'unallocated.rig.eu': { aaaa: ['4000::1'] },
  'private-last.rig.eu': { a: [PUBLIC, '127.0.0.1'] },
  'private-first.rig.eu': { a: ['127.0.0.1', PUBLIC] },
  'private-among-many.rig.eu': { a: [...LIKE_PUBLIC, '10.0.0.1', ...LIKE_PUBLIC] },
  'private-six.rig.eu': { a: [PUBLIC], aaaa: [LOOPBACK_SIX] },
  'private-four.rig.eu': { a: ['192.168.0.1'], aaaa: [PUBLIC_SIX] },
  'nat64-beside.rig.eu': { a: [PUBLIC], aaaa: ['64:ff9b::5db8:d822'] },
}

const PUBLIC_NAMES: Zone = {
  'public.rig.eu': { a: [PUBLIC] },
  'public-two.rig.eu': { a: [PUBLIC, PUBLIC_TOO] },
  'public-six.rig.eu': { aaaa: [PUBLIC_SIX] },
  'public-both.rig.eu': { a: [PUBLIC], aaaa: [PUBLIC_SIX] },
  'public-mapped.rig.eu': { aaaa: [`::ffff:${PUBLIC}`] },
}

/** The answers of the rig's DNS server; `rebind` is for {@link REBINDING}. */
export const ZONE: Zone = {
  ...PRIVATE_NAMES,
  ...PUBLIC_NAMES,
  'rebind.rig.eu': Array.from({ length: 40 }, (_value, n) => ({ a: [n % 2 === 0 ? PUBLIC : '10.0.0.1'] })),
  'moving.rig.eu': [{ a: [PUBLIC] }, { a: ['169.254.169.254'] }],
  'empty.rig.eu': {},
}

/** A name that is public at every other look-up, and one that becomes private after the first. */
export const REBINDING = { alternating: 'https://rebind.rig.eu/', moving: 'https://moving.rig.eu/' }

function target(
  url: string,
  outcome: Target['outcome'],
  registers: boolean,
  policy: Target['policy'],
): Target {
  return { url, outcome, registers, policy }
}

export const TARGETS: readonly Target[] = [
  ...PRIVATE_HOSTS.map((host) => target(`https://${host}/`, 'blocked_target', false, 'strict')),
  ...PRIVATE_HOSTS.map((host) => target(`http://${host}:8080/`, 'blocked_target', false, 'http')),
  ...DECEPTIVE.map((url) => target(url, 'blocked_target', false, 'strict')),
  ...Object.keys(PRIVATE_NAMES).map((name) => target(`https://${name}/`, 'blocked_target', true, 'strict')),
  ...Object.keys(PRIVATE_NAMES).map((name) => target(`http://${name}/`, 'blocked_target', true, 'http')),
  ...Object.keys(PUBLIC_NAMES).map((name) => target(`https://${name}/`, 'delivered', true, 'strict')),
  ...[`https://${PUBLIC}/`, 'https://0x5db8d822/', `https://[${PUBLIC_SIX}]/`].map((url) =>
    target(url, 'delivered', true, 'strict'),
  ),
  // A public address in disguise is let through, but no certificate is for it.
  target(`http://[::ffff:${PUBLIC}]:8080/`, 'delivered', true, 'http'),
  target(`https://[::ffff:${PUBLIC}]/`, 'tls_error', true, 'strict'),
  target('https://public.rig.eu:8443/hook?a=b', 'delivered', true, 'strict'),
  target('https://public.rig.eu./', 'delivered', true, 'strict'),
  target('http://public.rig.eu:8080/', 'delivered', true, 'http'),
  target('https://public.rig.eu/redirect', 'http_status', true, 'strict'),
  target('https://nowhere.rig.eu/', 'dns_error', true, 'strict'),
  target('https://empty.rig.eu/', 'dns_error', true, 'strict'),
  target('https://dead.rig.eu/', 'dns_timeout', true, 'strict'),
]
