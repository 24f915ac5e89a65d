import { expect } from 'chai'
import { startDemoReceiver } from '../../../src/dev/demo-receiver.ts'
import type { DemoReceiver } from '../../../src/dev/demo-receiver.ts'

describe('the demo receiver', () => {
  const said: string[] = []
  let receiver: DemoReceiver
  before(async () => {
    receiver = await startDemoReceiver({ print: (line) => said.push(line) })
  })
  after(() => receiver.stop())

  it('answers 200 and prints event key, event id and size', async () => {
    const body = JSON.stringify({ event: 'invoice:paid', data: {} })
    expect(await post('/', body)).to.equal(200)
    expect(said.at(-1)).to.equal('POST / invoice:paid X-Webhook-Event-ID evt-1, 34 bytes, answered 200')
  })

  it('answers 500 under /fail', async () => {
    expect(await post('/fail', 'no json')).to.equal(500)
    expect(said.at(-1)).to.include('answered 500')
  })

  it('prints one line in which nothing that was sent controls the terminal', async () => {
    const event = 'a\u001b[2J\u009b\u202e\u2028\nPOST / forged\u{e0001}'
    await post('/', JSON.stringify({ event }), 'id\u009b')
    expect(said.at(-1)).to.match(
      /^POST \/ a\\u001b\[2J\\u009b\\u202e\\u2028\\u000aPOST \/ forged\\udb40\\udc01 /,
    )
    expect(said.at(-1)).to.not.match(/[\p{Cc}\p{Cf}\p{Zl}]/u)
  })

  it('cuts an event key that is too long to show', async () => {
    await post('/', JSON.stringify({ event: 'x'.repeat(100_000) }))
    expect(said.at(-1)).to.have.length.below(600).and.include('100012 bytes, answered 200')
  })

  async function post(path: string, body: string, eventId = 'evt-1'): Promise<number> {
    const headers = { 'x-webhook-event-id': eventId }
    return (await fetch(`${receiver.url}${path}`, { method: 'POST', body, headers })).status
  }
})
