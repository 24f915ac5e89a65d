import { expect } from 'chai'
import { codeBlocksOf } from '../helpers/documents/documents.ts'

const FENCE = '```'

describe('codeBlocksOf', () => {
  it('reads each block with its heading, language, line and reason', () => {
    const document = [
      '# Title',
      `${FENCE}sh`,
      '# no heading',
      'true',
      FENCE,
      '## Next',
      '1. A step:',
      '',
      '   <!-- not executed: needs a cluster -->',
      '',
      `   ${FENCE}`,
      '   NAME=value',
      '     more',
      `   ${FENCE}`,
    ].join('\n')
    expect(codeBlocksOf(document)).to.deep.equal([
      { line: 2, heading: 'Title', language: 'sh', text: '# no heading\ntrue\n', notExecuted: null },
      {
        line: 11,
        heading: 'Next',
        language: '',
        text: 'NAME=value\n  more\n',
        notExecuted: 'needs a cluster',
      },
    ])
  })

  it('refuses a mark without a reason', () => {
    for (const mark of ['<!-- not executed: -->', '<!-- not executed -->'])
      expect(() => codeBlocksOf(`${mark}\n${FENCE}sh\ntrue\n${FENCE}\n`)).to.throw(
        'line 1: the mark has no reason',
      )
  })

  it('refuses a mark without a block directly below, and a block without an end', () => {
    const mark = '<!-- not executed: needs a cluster -->'
    for (const document of [`${mark}\nProse.\n\n${FENCE}sh\n${FENCE}`, `${mark}\n\n`, `${mark}\n${mark}`])
      expect(() => codeBlocksOf(document)).to.throw('line 1: no block follows the mark')
    expect(() => codeBlocksOf(`${FENCE}sh\ntrue\n`)).to.throw('line 1: the block has no end')
  })
})
