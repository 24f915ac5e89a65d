import { expect } from 'chai'
import { newEvent, serialiseEnvelope, type Envelope } from '../../../../src/deliveries/publish/envelope.ts'

const fields: Envelope = {
  event: 'customer:created',
  dataText: '{"id":"cus_1"}',
  timestamp: 1_700_000_000_123,
  traceId: 'trace-1',
  spanId: 'span-1',
  triggeredBy: { id: 'mem_1', name: 'An' },
}
const text = (changes: Partial<Envelope> = {}): string =>
  serialiseEnvelope({ ...fields, ...changes }).toString('utf8')

describe('newEvent', () => {
  it('rounds the time to the millisecond, in its body and outside alike', () => {
    const { body, emittedAt } = newEvent('org_1', { ...fields, timestamp: 1_700_000_000_122.7 })
    expect(body.toString()).to.include('"timestamp":1700000000123,')
    expect(emittedAt.getTime()).to.equal(fields.timestamp)
  })
})

describe('serialiseEnvelope', () => {
  it('writes the fields of spec 2.2, in its order, on one line', () => {
    expect(text()).to.equal(
      '{"event":"customer:created","data":{"id":"cus_1"},"timestamp":1700000000123,"traceId":"trace-1","spanId":"span-1","triggeredBy":{"id":"mem_1","name":"An"}}',
    )
  })

  it('leaves spanId out where there is none', () => {
    expect(JSON.parse(text({ spanId: null }))).to.not.have.property('spanId')
  })

  it('writes null for a system action', () => {
    expect(text({ triggeredBy: null })).to.match(/,"triggeredBy":null\}$/)
  })

  it('copies data as it is written', () => {
    const dataText = String.raw`{"z":1.0,"a":1e3,"big":12345678901234567890,"nul":"\u0000","é":"\/"}`
    expect(text({ dataText })).to.include(`"data":${dataText},`)
  })

  it('writes only id and name of who triggered it', () => {
    const triggeredBy = { name: 'An', id: 'mem_1', email: 'an@zon.example' }
    expect(text({ triggeredBy })).to.include('"triggeredBy":{"id":"mem_1","name":"An"}')
  })

  it('escapes free text', () => {
    const name = '"An"\n\u2028\ud800 😀'
    expect(JSON.parse(text({ triggeredBy: { id: 'mem_1', name } }))).to.have.nested.property(
      'triggeredBy.name',
      name,
    )
    expect(text({ triggeredBy: { id: 'mem_1', name } })).to.not.match(/[\n\ufffd]/)
  })
})
