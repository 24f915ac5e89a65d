import { expect } from 'chai'
import { routeDelivery } from '../../../../src/deliveries/dispatch/route-delivery.ts'

const QUIET = {
  hasFault: false,
  hasOpenIncident: false,
  endpoint: 'healthy',
  isTemporalBehind: false,
  isBackfillPending: false,
} as const

describe('the route of a first attempt', () => {
  it('is the workflow for every webhook in `workflow`', () => {
    const worst = { ...QUIET, isTemporalBehind: true, isBackfillPending: true }
    expect(routeDelivery({ ...worst, mode: 'workflow' })).to.equal('workflow')
  })

  it('is inline in `direct`, even while Temporal keeps up', () => {
    expect(routeDelivery({ ...QUIET, mode: 'direct' })).to.equal('inline')
    expect(routeDelivery({ ...QUIET, mode: 'direct', endpoint: 'unproven' })).to.equal('inline')
  })

  it('is inline in `overflow` only while Temporal is behind or backfill is owed', () => {
    const mode = 'overflow'
    expect(routeDelivery({ ...QUIET, mode })).to.equal('workflow')
    expect(routeDelivery({ ...QUIET, mode, isTemporalBehind: true })).to.equal('inline')
    expect(routeDelivery({ ...QUIET, mode, isBackfillPending: true })).to.equal('inline')
  })

  it('is inline for a webhook with an open incident while its endpoint answers', () => {
    expect(routeDelivery({ ...QUIET, mode: 'direct', hasOpenIncident: true })).to.equal('inline')
  })

  it('is the workflow for a webhook that is not healthy, in every mode', () => {
    for (const mode of ['workflow', 'overflow', 'direct'] as const)
      for (const unhealthy of [
        { hasOpenIncident: true, endpoint: 'unproven' },
        { hasFault: true },
        { endpoint: 'failing' },
        { endpoint: 'slow' },
      ] as const)
        expect(routeDelivery({ ...QUIET, isTemporalBehind: true, mode, ...unhealthy })).to.equal('workflow')
  })
})
