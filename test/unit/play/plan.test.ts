import { expect } from 'chai'
import { planPlay } from '../../faults/play/plan.ts'

const MINUTE_MS = 60_000

describe('the plan of a random play', () => {
  it('is the same for the same seed, and another for another', () => {
    const plan = planPlay(7, MINUTE_MS, ['kill', 'pause'])
    expect(planPlay(7, MINUTE_MS, ['kill', 'pause'])).to.deep.equal(plan)
    expect(planPlay(8, MINUTE_MS, ['kill', 'pause'])).not.to.deep.equal(plan)
  })

  it('has at most three faults at a time, all of which end within the play', () => {
    for (let seed = 0; seed < 50; seed++) {
      const { tracks } = planPlay(seed, MINUTE_MS, ['kill', 'pause', 'temporal_wipe'])
      expect(tracks).to.have.length(3)
      for (const track of tracks)
        expect(track.reduce((sum, { afterMs, forMs }) => sum + afterMs + forMs, 0)).to.be.at.most(MINUTE_MS)
    }
  })

  it('draws every given kind of action and fault, and no other', () => {
    const plans = Array.from({ length: 20 }, (_, seed) => planPlay(seed, MINUTE_MS, ['kill', 'pause']))
    const actions = new Set(plans.flatMap((plan) => plan.actions.map(({ action }) => action.kind)))
    expect([...actions]).to.have.members([
      'publish',
      'retry',
      'retry_all',
      'discard',
      'discard_failed',
      'exhaust',
      'switch',
      'narrow',
      'move',
      'delete',
      'create',
      'replay',
      'test',
      'signal',
      'cancel',
      'terminate_workflow',
      'purge',
      'erase',
    ])
    const faults = new Set(plans.flatMap(({ tracks }) => tracks.flat().map(({ kind }) => kind)))
    expect([...faults]).to.have.members(['kill', 'pause'])
  })
})
