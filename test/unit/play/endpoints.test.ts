import { expect } from 'chai'
import { createDice } from '../../faults/play/dice.ts'
import { createEndpoints } from '../../faults/play/endpoints.ts'

describe('the endpoints of the random play', () => {
  it('note a POST that came before its webhook was confirmed as of that webhook', async () => {
    const endpoints = await createEndpoints(createDice(1), () => null)
    try {
      const index = endpoints.add([{ forMs: 0, behaviour: 'confirms' }])
      await fetch(endpoints.urlOf(index, 0), { method: 'POST', body: '{}' })
      endpoints.belongsTo(index, 'webhook-1')
      expect({ ...endpoints.ledger[0] }).to.include({ webhookId: 'webhook-1', status: 200 })
    } finally {
      await endpoints.close()
    }
  })
})
