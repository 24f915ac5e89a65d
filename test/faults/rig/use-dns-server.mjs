// Loaded into a process under test with NODE_OPTIONS=--import: its look-ups ask the server at POSTHORN_TEST_DNS.
import { promises as dns } from 'node:dns'

const { Resolver } = dns
dns.Resolver = class extends Resolver {
  constructor(options) {
    super(options)
    this.setServers([process.env.POSTHORN_TEST_DNS])
  }
}
