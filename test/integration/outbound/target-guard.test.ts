import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { createAddressGuard } from '../../../src/outbound/address-guard.ts'
import { createConnector, type Connect, assertGuardWorks } from '../../../src/outbound/pinned-connector.ts'
import { OutboundError } from '../../../src/outbound/failure-code.ts'
import { createResolver, type ResolvedAddress, type Resolver } from '../../../src/outbound/resolver.ts'
import { startDnsServer, type DnsServer, type Zone } from './dns-server.ts'
import { answer, createTestClient, startReceiver, type Receiver } from './receivers.ts'

const PUBLIC_IPV6 = '2001:4860:4860::8888'
const LOOPBACK_IPV6 = '::1'
const MAPPED_LOOPBACK = '::ffff:127.0.0.1'

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'none'
  } catch (error) {
    return error instanceof OutboundError ? error.code : String(error)
  }
}

describe('resolving and connecting', () => {
  let zone: Zone
  let dns: DnsServer
  let receiver: Receiver

  before(async () => {
    zone = {
      'public.eu': { a: ['8.8.8.8', '1.1.1.1'], aaaa: [PUBLIC_IPV6] },
      'only-six.eu': { aaaa: [PUBLIC_IPV6] },
      'empty.eu': {},
      'private.eu': { a: ['127.0.0.1'] },
      'private-six.eu': { aaaa: [LOOPBACK_IPV6] },
      'mapped.eu': { aaaa: [MAPPED_LOOPBACK] },
      'private-last.eu': { a: ['8.8.8.8', '127.0.0.1'] },
      'private-first.eu': { a: ['127.0.0.1', '8.8.8.8'] },
      'mixed-families.eu': { a: ['8.8.8.8'], aaaa: [LOOPBACK_IPV6] },
      'metadata.eu': { a: ['169.254.169.254'] },
      'nat64.eu': { aaaa: ['64:ff9b::a9fe:a9fe'] },
      'nat64-public.eu': { a: ['8.8.8.8'], aaaa: ['64:ff9b::808:808'] },
      'six-to-four.eu': { aaaa: ['2002:7f00:1::1'] },
      'no-six.eu': { a: ['8.8.8.8'], aaaa: 'silent' },
      'late-four.eu': { a: ['8.8.8.8'], aAfterMs: 400, aaaa: ['2606:4700::1'] },
      'private-beyond.eu': {
        a: [...Array.from({ length: 20 }, (_, index) => `8.8.8.${index}`), '127.0.0.1'],
      },
      'many.eu': {
        a: Array.from({ length: 20 }, (_, index) => `8.8.8.${index}`),
        aaaa: Array.from({ length: 20 }, (_, index) => `2606:4700::${index}`),
      },
    }
    dns = await startDnsServer(zone)
    receiver = await startReceiver(answer('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'))
  })

  after(async () => {
    await dns.stop()
    await receiver.stop()
  })

  function resolverFor(allowedCidrs: string[], lookupTimeoutMs = 3000): Resolver {
    return createResolver({
      guard: createAddressGuard({ allowedCidrs }),
      servers: [dns.address],
      lookupTimeoutMs,
    })
  }

  function connectorFor(allowedCidrs: string[], resolver = resolverFor(allowedCidrs)): Connect {
    const guard = createAddressGuard({ allowedCidrs })
    return createConnector({ allowHttp: true, guard, resolver, connectTimeoutMs: 1000 })
  }

  describe('Resolver.resolve', () => {
    it('returns all addresses of a public name', async () => {
      expect(await resolverFor([]).resolve('public.eu')).to.have.deep.members([
        { address: '8.8.8.8', family: 4 },
        { address: '1.1.1.1', family: 4 },
        { address: '2001:4860:4860::8888', family: 6 },
      ])
      expect(await resolverFor([]).resolve('only-six.eu')).to.have.lengthOf(1)
    })

    const blocked = [
      'private.eu',
      'private-six.eu',
      'mapped.eu',
      'private-last.eu',
      'private-first.eu',
      'private-beyond.eu',
    ]
    for (const name of [
      ...blocked,
      'mixed-families.eu',
      'metadata.eu',
      'nat64.eu',
      'nat64-public.eu',
      'six-to-four.eu',
      'localhost',
      'x.localhost',
      'localhost.',
    ]) {
      it(`refuses ${name}`, async () => {
        expect(await codeOf(resolverFor([]).resolve(name))).to.equal('blocked_target')
      })
    }

    it('returns the allowed addresses of localhost without a DNS query', async () => {
      zone['localhost'] = { a: ['8.8.8.8'] }
      expect(await resolverFor(['127.0.0.0/8']).resolve('localhost')).to.deep.equal([
        { address: '127.0.0.1', family: 4 },
      ])
      expect(await resolverFor(['127.0.0.0/8', '::1/128']).resolve('a.localhost')).to.have.lengthOf(2)
    })

    it('distinguishes a name without an address from one whose server does not answer', async () => {
      expect(await codeOf(resolverFor([]).resolve('nowhere.eu'))).to.equal('dns_error')
      expect(await codeOf(resolverFor([]).resolve('empty.eu'))).to.equal('dns_error')
      expect(await codeOf(resolverFor([], 100).resolve('dead.eu'))).to.equal('dns_timeout')
    })

    it('checks the embedded IPv4 address of an allowed NAT64 network', async () => {
      const resolver = resolverFor(['64:ff9b::/96'])
      expect(await resolver.resolve('nat64-public.eu')).to.have.lengthOf(2)
      expect(await codeOf(resolver.resolve('nat64.eu'))).to.equal('blocked_target')
    })

    it('returns the addresses of one family when the server does not answer for the other', async () => {
      const startedAtMs = performance.now()
      const addresses = await resolverFor([], 60_000).resolve('no-six.eu')
      expect(addresses).to.deep.equal([{ address: '8.8.8.8', family: 4 }])
      // Without that the query is sent again, which takes two seconds or more.
      expect(performance.now() - startedAtMs).to.be.below(1_900)
    })

    it('waits for the addresses of IPv4, which most hosts need, where those of IPv6 came first', async () => {
      expect((await resolverFor([]).resolve('late-four.eu')).map(({ family }) => family)).to.deep.equal([
        4, 6,
      ])
    })

    it('returns a few addresses of each family, however many there are', async () => {
      expect(await resolverFor([]).resolve('many.eu')).to.have.length(16)
    })

    it('queries once for a burst to one name, and again for the next burst', async () => {
      const resolver = resolverFor([])
      const before = dns.queries()
      for (const queries of [2, 4]) {
        await Promise.all(Array.from({ length: 50 }, () => resolver.resolve('public.eu')))
        expect(dns.queries() - before).to.equal(queries)
      }
    })

    it('gives up on a silent server within its bound', async () => {
      expect(await codeOf(resolverFor([]).resolve('dead.eu'))).to.equal('dns_timeout')
    })

    it('returns at once for one name while a hundred others are pending', async () => {
      const resolver = resolverFor([], 2_000)
      let settled = 0
      const silent = Array.from({ length: 100 }, (_value, n) =>
        codeOf(resolver.resolve(`dead${n}.eu`)).finally(() => settled++),
      )
      await resolver.resolve('public.eu')
      expect(settled).to.equal(0)
      expect(new Set(await Promise.all(silent))).to.deep.equal(new Set(['dns_timeout']))
    })
  })

  describe('createConnector', () => {
    const target = (hostname: string): Parameters<Connect>[0] => {
      return { protocol: 'http:', hostname, port: String(receiver.port) }
    }
    for (const host of ['127.0.0.1', '::1', '[::ffff:127.0.0.1]', 'fe80::1%lo', 'mapped.eu', 'localhost']) {
      it(`opens no socket to ${host}`, async () => {
        const before = receiver.connections()
        expect(await codeOf(connectorFor([])(target(host)))).to.equal('blocked_target')
        expect(receiver.connections()).to.equal(before)
      })
    }

    it('connects to the checked address without a second DNS query', async () => {
      zone['rebinding.eu'] = { a: ['127.0.0.1'] }
      const honest = resolverFor(['127.0.0.0/8'])
      const resolver: Resolver = {
        async resolve(hostname) {
          const addresses = await honest.resolve(hostname)
          zone['rebinding.eu'] = 'silent'
          return addresses
        },
      }
      const { socket } = await connectorFor(['127.0.0.0/8'], resolver)(target('rebinding.eu'))
      expect(socket.remoteAddress).to.equal('127.0.0.1')
      socket.destroy()
    })

    it('checks the connected address again', async () => {
      const lying: Resolver = { resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]) }
      expect(await codeOf(connectorFor([], lying)(target('liar.eu')))).to.equal('blocked_target')
      expect(receiver.received).to.deep.equal([])
    })

    it('refuses plain http and every other scheme where http is not allowed', async () => {
      const guard = createAddressGuard({ allowedCidrs: ['127.0.0.0/8'] })
      const options = { guard, resolver: resolverFor([]), connectTimeoutMs: 1000 }
      const connect = createConnector({ ...options, allowHttp: false })
      expect(await codeOf(connect(target('127.0.0.1')))).to.equal('blocked_target')
      expect(await codeOf(connect({ ...target('127.0.0.1'), protocol: 'ftp:' }))).to.equal('blocked_target')
    })

    it('connects with plain http to loopback only, where that is allowed, whatever DNS answers', async () => {
      const guard = createAddressGuard({ allowedCidrs: ['127.0.0.0/8', '10.0.0.0/8', '::1/128'] })
      const answers = new Map<string, ResolvedAddress[]>([
        ['here.eu', [{ address: '127.0.0.1', family: 4 }]],
        ['public.eu', [{ address: '203.0.113.9', family: 4 }]],
        [
          'both.eu',
          [
            { address: '127.0.0.1', family: 4 },
            { address: '10.0.0.9', family: 4 },
          ],
        ],
      ])
      const resolver: Resolver = { resolve: (host) => Promise.resolve(answers.get(host) ?? []) }
      const connect = createConnector({ guard, resolver, connectTimeoutMs: 1000, allowHttp: 'loopback' })
      for (const host of ['127.0.0.1', 'here.eu']) (await connect(target(host))).socket.destroy()
      for (const host of ['public.eu', 'both.eu', '10.0.0.9', '203.0.113.9'])
        expect(await codeOf(connect(target(host))), host).to.equal('blocked_target')
    })

    it('stops at once when its signal aborts', async () => {
      const stop = new AbortController()
      const connecting = connectorFor([])({ ...target('dead.eu'), signal: stop.signal })
      const reason = new OutboundError('timeout', 'Enough.')
      stop.abort(reason)
      expect(await codeOf(connecting)).to.equal('timeout')
      expect(await codeOf(connectorFor([])({ ...target('public.eu'), signal: stop.signal }))).to.equal(
        'timeout',
      )
    })

    it('opens no socket for an aborted signal, even without a DNS query', async () => {
      const signal = AbortSignal.abort(new OutboundError('timeout', 'Enough.'))
      const before = receiver.connections()
      const connect = connectorFor(['127.0.0.0/8'])
      expect(await codeOf(connect({ ...target('127.0.0.1'), signal }))).to.equal('timeout')
      // Made after it, and heard of.
      const { socket } = await connect(target('127.0.0.1'))
      socket.destroy()
      await eventually(() => expect(receiver.open()).to.equal(0))
      expect(receiver.connections()).to.equal(before + 1)
    })
  })

  describe('HttpClient.post under the strict policy', () => {
    for (const host of ['127.1', '[::ffff:127.0.0.1]', 'a.localhost']) {
      it(`records ${host} as blocked and names no address`, async () => {
        const before = receiver.connections()
        const client = createTestClient({ allowedCidrs: [] })
        const url = `http://${host}:${receiver.port}/`
        const result = await client.post({ url, headers: {}, body: Buffer.from('{}') })
        expect(result).to.include({ succeeded: false, failureCode: 'blocked_target', statusCode: null })
        expect(result.error).to.equal("The endpoint's host is not on the public internet.")
        expect(receiver.connections()).to.equal(before)
      })
    }
  })

  describe('assertGuardWorks', () => {
    it('passes', () => assertGuardWorks())

    it('stops the process when the connector lets a private address through', async () => {
      const guard = { isBlocked: (address: string) => address !== '127.0.0.1' }
      const resolver = createResolver({ guard })
      const connect = createConnector({ allowHttp: true, guard, resolver, connectTimeoutMs: 100 })
      const error = await assertGuardWorks(connect).catch((thrown: unknown) => thrown)
      expect(String(error)).to.match(/does not block 127\.0\.0\.1, localhost$/)
    })
  })
})
