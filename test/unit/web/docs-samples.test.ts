import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect } from 'chai'

type Samples = Record<'BODY' | 'SECRET' | 'SIGNATURE', string> & {
  VERIFY_SAMPLES: { language: string; program: string }[]
}

const module = new URL('../../../src/web/pages/docs/samples.js', import.meta.url).href
const { BODY, SECRET, SIGNATURE, VERIFY_SAMPLES } = (await import(module)) as Samples

const read = (name: string): string =>
  readFileSync(new URL(`../../../docs/verify/${name}`, import.meta.url), 'utf8')

describe('the samples of /docs', () => {
  it('are the tested programs of docs/verify', () => {
    const files = ['node.mjs', 'python.py', 'go/main.go', 'Verify.java']
    expect(VERIFY_SAMPLES.map(({ program }) => `${program}\n`)).to.deep.equal(files.map(read))
  })

  it('show a delivery whose signature is right', () => {
    expect(SIGNATURE).to.equal(`sha256=${createHmac('sha256', SECRET).update(BODY).digest('hex')}`)
  })
})
