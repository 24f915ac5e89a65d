import { expect } from 'chai'
import { webhookLimit } from '../../../src/process/service-settings.ts'

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
