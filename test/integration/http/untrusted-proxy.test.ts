import { expect } from 'chai'
import { createTestApi } from '../../helpers/api/api.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

describe('a peer that sends X-Forwarded-For', () => {
  const database = useDatabase()

  /** What is logged of it for two requests. */
  async function logOf(trustedProxies: string[]): Promise<object[]> {
    const lines: object[] = []
    const logger = { ...silentLogger, warn: (fields: object) => void lines.push(fields) }
    const api = await createTestApi(database.dataSource, { logger, trustedProxies })
    for (const sender of ['203.0.113.1', '203.0.113.2'])
      await api.call('GET', '/healthz', { headers: { 'x-forwarded-for': sender } })
    await api.close()
    return lines
  }

  it('is logged once where it is not in TRUSTED_PROXIES', async () => {
    expect(await logOf([])).to.deep.equal([{ event: 'http.proxy_untrusted', peer: '127.0.0.1' }])
  })

  it('is not logged where it is', async () => {
    expect(await logOf(['127.0.0.1/32'])).to.deep.equal([])
  })
})
