import { expect } from 'chai'
import { createAddressGuard } from '../../../src/outbound/address-guard.ts'
import { createConnector } from '../../../src/outbound/pinned-connector.ts'
import { describeError } from '../../../src/outbound/failure-code.ts'
import type { ResolvedAddress } from '../../../src/outbound/resolver.ts'

/** The broadcast address of loopback: the system refuses a TCP connection to it at once, before any packet. */
const NO_ROUTE: ResolvedAddress = { address: '127.255.255.255', family: 4 }

describe('createConnector without a route', () => {
  function connectTo(protocol: string, addresses: ResolvedAddress[]): Promise<unknown> {
    const guard = createAddressGuard({ allowedCidrs: ['127.0.0.0/8'] })
    const resolver = { resolve: () => Promise.resolve(addresses) }
    const connect = createConnector({ allowHttp: true, guard, resolver, connectTimeoutMs: 1_000 })
    return connect({ protocol, hostname: 'receiver.example', port: '' }).then(
      () => null,
      (error: unknown) => error,
    )
  }

  for (const protocol of ['http:', 'https:']) {
    it(`rejects over ${protocol} when the system refuses the connection at once`, async () => {
      const error = await connectTo(protocol, [NO_ROUTE])
      expect(error).to.include({ code: 'ENETUNREACH' })
      expect(describeError(error)).to.deep.equal({
        failureCode: 'network_error',
        error: 'The network has no route to the endpoint.',
      })
    })

    it(`rejects over ${protocol} when the system refuses every address of several at once`, async () => {
      const error = await connectTo(protocol, [NO_ROUTE, NO_ROUTE])
      expect(describeError(error)).to.include({ failureCode: 'network_error' })
    })
  }

  it('reports a fault of Posthorn when file descriptors run out', () => {
    for (const code of ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])
      expect(describeError(Object.assign(new Error(code), { code }))).to.deep.equal({
        failureCode: 'network_error',
        error: 'The service could not open another connection.',
      })
  })
})
