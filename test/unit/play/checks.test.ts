import { expect } from 'chai'
import { checkRecord } from '../../faults/play/check-record.ts'
import { report } from '../../faults/play/report.ts'
import { DELIVERY_ID, forgeRecord } from './forged-record.ts'
import { BROKEN, brokenRules, comeEarly, SOUND } from './forgeries.ts'

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

  it('report the seed, the delivery and its ledger', async () => {
    const record = forgeRecord()
    comeEarly(record)
    const text = report(record, await checkRecord(record))
    expect(text).to.include('POSTHORN_PLAY_SEED=1').and.include(`delivery ${DELIVERY_ID}`)
    expect(text).to.match(/post 2, attempt 2, answered 200/)
  })
})
