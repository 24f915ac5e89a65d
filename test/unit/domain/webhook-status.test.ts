import { expect } from 'chai'
import { webhookStatus } from '../../../src/domain/webhook-status.ts'

describe('the status of a webhook', () => {
  const status = (changes: Partial<Parameters<typeof webhookStatus>[0]> = {}) =>
    webhookStatus({
      enabled: true,
      hasOpenIncident: true,
      latestOutcome: 'failed',
      sinceOpened: { attempts: 20, succeeded: 0 },
      ...changes,
    })

  it('is failing while an incident is open and nothing succeeds', () => {
    expect(status()).to.equal('failing')
    expect(status({ enabled: false })).to.equal('failing')
    expect(status({ latestOutcome: null, sinceOpened: { attempts: 0, succeeded: 0 } })).to.equal('failing')
  })

  it('is degraded while an incident is open and the latest attempt, or one in ten, succeeded', () => {
    expect(status({ latestOutcome: 'succeeded' })).to.equal('degraded')
    expect(status({ sinceOpened: { attempts: 20, succeeded: 2 } })).to.equal('degraded')
    expect(status({ sinceOpened: { attempts: 21, succeeded: 2 } })).to.equal('failing')
  })

  it('is degraded without an incident after a failed attempt, and healthy after a succeeded one', () => {
    expect(status({ hasOpenIncident: false })).to.equal('degraded')
    expect(status({ hasOpenIncident: false, latestOutcome: 'succeeded' })).to.equal('healthy')
    expect(status({ hasOpenIncident: false, latestOutcome: null })).to.equal('unattempted')
    expect(status({ hasOpenIncident: false, enabled: false })).to.equal('disabled')
  })
})
