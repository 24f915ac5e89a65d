import { expect } from 'chai'
import fc from 'fast-check'

type JsonText = { memberText: (json: string, name: string) => string; prettyJson: (json: string) => string }

/** It runs in browsers; its types are checked there. */
const module = new URL('../../../src/web/pages/app/lib/json-text.js', import.meta.url).href

describe('payloads in the developer area', () => {
  let { memberText, prettyJson } = {} as JsonText
  before(async () => {
    ;({ memberText, prettyJson } = (await import(module)) as JsonText)
  })

  it('are extracted from an answer character by character', () => {
    const nasty = '{"payload":[1.50,"},\\"payload\\":"],"x":{}}'
    expect(memberText(`{"id":"a","payload":${nasty},"attempts":[]}`, 'payload')).to.equal(nasty)
    expect(memberText(`{"payload":${nasty}}`, 'payload')).to.equal(nasty)
    fc.assert(
      fc.property(fc.json(), fc.jsonValue(), (payload, before) => {
        const packed = JSON.stringify(JSON.parse(payload))
        const answer = `{"before":${JSON.stringify(before)},"payload":${packed},"after":[{"payload":1}]}`
        expect(memberText(answer, 'payload')).to.equal(packed)
      }),
    )
  })

  it('keep their values when formatted, as JSON.stringify does', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const pretty = JSON.stringify(value, null, 2)
        expect(prettyJson(JSON.stringify(value))).to.equal(pretty)
        expect(prettyJson(JSON.stringify(value, null, '\t'))).to.equal(pretty)
      }),
    )
    expect(prettyJson('{"big":12345678901234567890,"spelled":1.50e+2,"text":"\\u0000{[,:"}')).to.equal(
      '{\n  "big": 12345678901234567890,\n  "spelled": 1.50e+2,\n  "text": "\\u0000{[,:"\n}',
    )
  })
})
