import { createHmac } from 'node:crypto'
import { expect } from 'chai'

type Samples = Record<'BODY' | 'SECRET' | 'SIGNATURE', string>

const module = new URL('../../../src/web/pages/docs/request.js', import.meta.url).href
const { BODY, SECRET, SIGNATURE } = (await import(module)) as Samples

describe('the samples of /docs', () => {
  it('show a delivery whose signature is right', () => {
    expect(SIGNATURE).to.equal(`sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`)
  })
})
