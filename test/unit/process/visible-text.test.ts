import { expect } from 'chai'
import { describeError, visibleText } from '../../../src/process/visible-text.ts'
import { renderText } from '../../../src/cli/doctor/check.ts'

const FOREIGN = 'a\u001b[2J\u0000\u007f\u009b\u00ad\u202e\u2066\u2028\u2029\u{e0001}\ud800\r\nb'
const SHOWN =
  'a\\u001b[2J\\u0000\\u007f\\u009b\\u00ad\\u202e\\u2066\\u2028\\u2029\\udb40\\udc01\\ud800\\u000d\\u000ab'

describe('text from outside, on a terminal', () => {
  it('has escapes for what would control it, hide text, reorder it or begin a line', () => {
    expect(visibleText(FOREIGN)).to.equal(SHOWN)
  })

  it('is otherwise left as it is', () => {
    const text = 'Zoë – 日本 😀 "\\n" אב'
    expect(visibleText(text)).to.equal(text)
    expect(visibleText(SHOWN)).to.equal(SHOWN)
  })

  it('stays the same JSON', () => {
    const json = '{"text":"\u009b2J \u202e 👩\u200d🚀"}'
    expect(JSON.parse(visibleText(json))).to.deep.equal(JSON.parse(json))
  })

  it('is one line of posthorn doctor, and keeps only the lines of an error', () => {
    const finding = { level: 'error', code: 'database.unreachable', seen: FOREIGN, cure: null } as const
    const [line, ...others] = renderText({ status: 'error', version: '1', findings: [finding] }).split('\n')
    expect(line).to.equal(`error    database.unreachable  ${SHOWN}`)
    expect(others).to.have.length(1)
    expect(describeError(new Error('one\n\u001b[2Jtwo'))).to.equal('one\n\\u001b[2Jtwo')
  })
})
