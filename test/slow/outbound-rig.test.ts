import { expect } from 'chai'
import { runRig, type RigReport } from '../helpers/outbound-rig/rig.ts'

describe('the outbound policy in a network where every private address listens', function () {
  let report: RigReport

  before(async function () {
    const outcome = await runRig()
    if ('impossible' in outcome) {
      process.stdout.write(
        `\n!!! SKIPPED, NOTHING WAS PROVED: the outbound rig needs a network namespace. ${outcome.impossible}\n\n`,
      )
      this.skip()
    }
    report = outcome
    const { targets, publicHits, breaches, bytes, reachable } = report
    process.stdout.write(
      `    outbound rig: ${targets} targets, ${publicHits} connections to public addresses, ` +
        `${breaches} connections and ${bytes} bytes to private ones (of which ${reachable} listen)\n`,
    )
  })

  it('runs where private addresses can be reached, and are monitored', () => {
    expect(report.reachable).to.be.above(60)
    expect(report.controlHits).to.equal(report.reachable)
  })

  it('results in the expected outcome for every target, at registration and at the attempt', () => {
    expect(report.targets).to.be.above(250)
    expect(report.faults).to.deep.equal([])
  })

  it('lets no connection reach a private address', () => {
    expect({ breaches: report.breaches, bytes: report.bytes }).to.deep.equal({ breaches: 0, bytes: 0 })
    expect(report.publicHits).to.be.above(10)
  })

  it('connects to the checked address, however often the DNS answer changes', () => {
    const turns = ['delivered', 'blocked_target']
    expect(report.alternating).to.deep.equal(Array.from({ length: 20 }, (_value, n) => turns[n % 2]))
  })

  it('stays on the public address with a reused connection, and resolves again with the next', () => {
    expect(report.kept).to.deep.equal(['delivered', 'delivered', 'blocked_target'])
  })
})
