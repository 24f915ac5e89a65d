import { expect } from 'chai'
import { DataSource } from 'typeorm'
import { createAuthentication, webhookLimit } from '../../../src/process/service-settings.ts'
import { ALL_SETTINGS, loadConfig } from '../../../src/config/load.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { TEST_KEY_RING } from '../../helpers/database/factories.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

describe('the API keys of the demo organisation', () => {
  function accepts(HOST: string): boolean {
    const env = { HOST, DATABASE_URL: 'postgres://p@127.0.0.1/p', POSTHORN_ENCRYPTION_KEYS: TEST_KEY_RING }
    // Nothing is asked of it before the first request.
    const dataSource = new DataSource({ type: 'postgres' })
    const witnesses = { logger: silentLogger, metrics: createMetrics() }
    return createAuthentication(dataSource, loadConfig(env, ALL_SETTINGS), witnesses).acceptsDemoKeys
  }

  for (const host of ['', '127.0.0.1', '127.0.0.2', '::1', 'localhost'])
    it(`are accepted by a process that listens on ${host === '' ? 'the default address' : host}`, () =>
      expect(accepts(host)).to.equal(true))

  for (const host of ['0.0.0.0', '::', '10.0.0.5', 'posthorn.example', '127.0.0.1.example'])
    it(`are refused by a process that listens on ${host}`, () => expect(accepts(host)).to.equal(false))
})

describe('webhookLimit', () => {
  function limitOf(webhooksPerOrganisation: number) {
    const warnings: unknown[] = []
    const limit = webhookLimit(
      { webhooksPerOrganisation },
      { warn: (fields: unknown) => warnings.push(fields) },
    )
    return { limit, warnings }
  }

  it('is WEBHOOKS_PER_ORGANISATION', () => {
    for (const limit of [1, 1_000]) expect(limitOf(limit)).to.deep.equal({ limit, warnings: [] })
  })

  it('is 1,000 where the setting is higher, and warns once', () => {
    const warning = { event: 'policy.webhooks_capped', configured: 100_000, limit: 1_000 }
    expect(limitOf(100_000)).to.deep.equal({ limit: 1_000, warnings: [warning] })
  })
})
