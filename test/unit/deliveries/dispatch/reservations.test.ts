import { expect } from 'chai'
import { createReservations } from '../../../../src/deliveries/dispatch/reservations.ts'

const LABEL = {
  organisationId: 'org_1',
  deliveryId: 'one',
  eventKey: 'invoice:paid',
  url: 'https://a.example/',
}

const AUDIENCE = { organisationId: 'org_1', key: 'invoice:paid', webhookId: null }

describe('the reservations of inline attempts', () => {
  it('are made for the webhooks that got an event of the same key, or for the one that an event is addressed to', () => {
    const reservations = createReservations({ room: () => 5_000, roomOf: () => 7 })
    const notes = [
      { ...LABEL, webhookId: 'paid' },
      { ...LABEL, webhookId: 'created', eventKey: 'invoice:created' },
      { ...LABEL, webhookId: 'foreign', organisationId: 'org_2' },
    ]
    for (const label of notes) reservations.note(label)
    const roomsFor = (...audiences: Parameters<typeof reservations.forCommit>[0]) =>
      reservations.forCommit(audiences, 10).rooms.webhooks
    expect(roomsFor(AUDIENCE, AUDIENCE)).to.deep.equal([{ webhookId: 'paid', room: 2 }])
    const toOne = { ...AUDIENCE, webhookId: 'created' }
    expect(roomsFor(toOne, toOne)).to.deep.equal([{ webhookId: 'created', room: 2 }])
  })

  it('know the thousand webhooks of an organisation that got a delivery last, and not those deleted long ago', () => {
    const reservations = createReservations({ room: () => 5_000, roomOf: () => 7 })
    const note = (index: number) => reservations.note({ ...LABEL, webhookId: `webhook ${index}` })
    note(-1)
    for (let index = 0; index < 1_500; index++) {
      note(index)
      note(-1)
    }
    const { rooms } = reservations.forCommit([AUDIENCE, AUDIENCE], 5_000)
    const known = rooms.webhooks.map(({ webhookId }) => webhookId)
    expect(known).to.have.length(1_000)
    expect(known).to.include.members(['webhook -1', 'webhook 1499', 'webhook 501'])
  })
})
