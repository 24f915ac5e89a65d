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

  async function post(path: string, body: string): Promise<number> {
    const headers = { 'x-webhook-event-id': 'evt-1' }
    return (await fetch(`${receiver.url}${path}`, { method: 'POST', body, headers })).status
  }
})
