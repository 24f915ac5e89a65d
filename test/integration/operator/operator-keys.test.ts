import { expect } from 'chai'
import { Registry } from 'prom-client'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { createOperatorKeys } from '../../../src/accounts/operator.ts'
import { createRateLimits } from '../../../src/http/limits/rate-limits.ts'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { asOperator, secretOf } from '../../helpers/api/operator.ts'
import { createMember } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

const ORGANISATIONS = '/api/operator/organisations'

describe('operator keys', () => {
  const database = useDatabase()
  const registry = new Registry()
  const lines: Record<string, unknown>[] = []
  let api: TestApi

  before(async () => {
    const metrics = createMetrics(registry)
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push({ ...fields }) }
    const limits = { management: 20, publish: 0, authFailures: 5, open: 0 }
    const rateLimits = createRateLimits(limits, { metrics })
    api = await createTestApi(database.dataSource, { metrics, logger, rateLimits })
  })
  after(() => api.close())

  it('are limited per key, in the headers of every answer', async () => {
    const { headers } = await api.call('GET', ORGANISATIONS, asOperator('manager'))
    expect(headers.get('ratelimit')).to.match(/^"management";r=19;/)
  })

  it('that are missing or wrong are refused with 401, logged, counted, and limited for their address', async () => {
    lines.length = 0
    const wrong = { headers: { 'x-operator-key': `${secretOf('all')}x` } }
    const { apiKey } = await createMember(database.dataSource)
    const inWrongHeader = { apiKey: secretOf('all') }
    for (const options of [wrong, {}, { apiKey }, inWrongHeader, wrong])
      expect((await api.call('GET', ORGANISATIONS, options)).status).to.equal(401)
    expect((await api.call('GET', ORGANISATIONS, wrong)).status).to.equal(429)
    // A key that was valid here lately is not locked out with its address.
    expect((await api.call('GET', ORGANISATIONS, asOperator())).status).to.equal(200)
    const refused = lines.filter(({ event }) => event === 'auth.refused')
    // The last one is checked beyond the limit, and counts to it.
    const reasons = ['operator', 'missing', 'missing', 'missing', 'operator', 'operator']
    expect(refused.map(({ reason }) => reason)).to.deep.equal(reasons)
    expect(JSON.stringify(lines)).to.not.include(secretOf('all'))
    const metrics = parseExposition(await registry.metrics())
    const labels = { purpose: 'request', reason: 'operator' }
    expect(metrics.valueOf('posthorn_auth_refused_total', labels)).to.equal(3)
  })

  it('that are not configured leave no operator API', async () => {
    const operatorKeys = createOperatorKeys([])
    const closed = await createTestApi(database.dataSource, { operatorKeys })
    for (const method of ['GET', 'POST', 'PUT', 'DELETE']) {
      const { status, json } = await closed.call(method, ORGANISATIONS, asOperator())
      expect(status, method).to.equal(404)
      expect(json, method).to.include({
        code: 'not_found',
        detail: 'No such path. The API begins at /api/orgs/:orgId; /docs describes it.',
      })
    }
    await closed.close()
  })
})
