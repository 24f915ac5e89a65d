import { expect } from 'chai'
import { createReservations } from '../../../../src/deliveries/dispatch/reservations.ts'

const LABEL = {
  organisationId: 'org_1',
  deliveryId: 'one',
  eventKey: 'invoice:paid',
  url: 'https://a.example/',
}

describe('the reservations of inline attempts', () => {
  it('know the thousand webhooks of an organisation that got a delivery last, and not those deleted long ago', () => {
    const reservations = createReservations({ room: () => 5_000, roomOf: () => 7 })
    const note = (index: number) => reservations.note({ ...LABEL, webhookId: `webhook ${index}` })
    note(-1)
    for (let index = 0; index < 1_500; index++) {
      note(index)
      note(-1)
    }
    const { rooms } = reservations.forCommit(['org_1'], 5_000)
    const known = rooms.webhooks.map(({ webhookId }) => webhookId)
    expect(known).to.have.length(1_000)
    expect(known).to.include.members(['webhook -1', 'webhook 1499', 'webhook 501'])
  })
})
