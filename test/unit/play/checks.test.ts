import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'chai'
import { checkRecord } from '../../faults/play/check-record.ts'
import { checkLateness } from '../../faults/play/checks/lateness.ts'
import { readHistory, writeHistory } from '../../faults/play/history.ts'
import { report } from '../../faults/play/report.ts'
import { DEFECTS, patched } from '../../planted/defects.ts'
import { DELIVERY_ID, forgePost, forgeRecord } from './forged-record.ts'
import { BROKEN, brokenRules, comeEarly, ofAnother } from './forgeries.ts'
import { SOUND } from './sound-records.ts'

describe('the checks of the random play', () => {
  for (const [what, forge] of SOUND)
    it(`accept ${what}`, async () => {
      expect(await brokenRules(forge)).to.deep.equal([])
    })

  for (const [rule, forgeries] of Object.entries(BROKEN))
    for (const [what, forge] of forgeries)
      it(`find under "${rule}": ${what}`, async () => {
        expect(await brokenRules(forge)).to.include(rule)
      })

  it('judge a history as they judge the record that it was written from', () => {
    const record = forgeRecord()
    comeEarly(record)
    record.faults.push({ kind: 'kill', process: 'api 1', detail: '', from: 2_000, to: Infinity })
    const file = writeHistory(record)
    expect(readHistory(file)).to.deep.equal(record)
    rmSync(dirname(file), { recursive: true })
  })

  it("allow an event of the victim to come later for what shares Temporal's queue", () => {
    const record = forgeRecord()
    record.queuedMs = 1_500
    record.posts = [forgePost(1, 3_100, 500), ofAnother(forgePost(2, 2_000, 200), 1)]
    expect(checkLateness(record)).to.deep.equal([])
  })

  it('judge the POSTs of a sender whose rows are not known', async () => {
    const record = forgeRecord()
    expect(await checkRecord({ ...record, facts: null })).to.deep.equal([])
    comeEarly(record)
    record.posts.push(forgePost(3, 1_500, 200))
    const rules = (await checkRecord({ ...record, facts: null })).map(({ rule }) => rule)
    expect(rules).to.deep.equal(['no attempt twice', 'no attempt early'])
  })

  it('report the seed, the delivery and its ledger', async () => {
    const record = forgeRecord()
    comeEarly(record)
    const text = report(record, await checkRecord(record))
    expect(text).to.include('POSTHORN_PLAY_SEED=1').and.include(`delivery ${DELIVERY_ID}`)
    expect(text).to.match(/post 2, attempt 2, of worker 2, answered 200/)
  })
})

describe('the defects that are planted for the random play', () => {
  it('change the product as it is', () => {
    for (const { what, patches } of DEFECTS)
      for (const patch of patches) expect(() => patched(patch), what).not.to.throw()
  })
})
