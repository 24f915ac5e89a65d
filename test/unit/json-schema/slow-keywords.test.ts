import ajvFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { PAYLOAD_FORMATS } from '../../../src/catalogue/schema-compiler.ts'
import { slowKeywords, takesConstantTime } from '../../../src/json-schema/slow-keywords.ts'

/** Processor time, in microseconds. */
const MAX_CPU_US = 1_000_000

const FAST = [
  '^ord_[0-9a-z]+$',
  '^[A-Z]{2}$',
  '^\\d{4}-\\d{2}-\\d{2}$',
  '^(ord|inv)_[0-9a-z]+$',
  '^(?:a|b)$',
  '^[()|*+]+$',
  '^\\p{L}+$',
  '^[A-Z]{40}-[0-9]+[a-z]{2}$',
]
const SLOW = [
  '^(a+)+$',
  '(a+)+',
  '^(a|a)*$',
  '^(?:a|ab){2,}$',
  '^a*a*$',
  'a+$',
  '^(?=a)a+$',
  '^(a)\\1+$',
  '^a|b+$',
  '^((a)|b)+$',
  '^[0-9a-f]*[0-9a-f]{64}$',
  '^[^@]*(?:aaaaaaaaaaaaaaaaaaaa|b)$',
]

describe('slow keywords', () => {
  for (const [patterns, count] of [
    [FAST, 0],
    [SLOW, 1],
  ] as const)
    for (const pattern of patterns)
      it(`are ${count === 0 ? 'not' : 'found with'} the pattern ${pattern}`, () => {
        expect(slowKeywords({ type: 'string', pattern })).to.have.length(count)
        expect(slowKeywords({ patternProperties: { [pattern]: {} } })).to.have.length(count)
      })

  it('are named with their pointer', () => {
    const schema = {
      properties: {
        'a/b': { pattern: '(a+)+' },
        pattern: { type: 'string' },
        const: { items: { uniqueItems: true } },
        tags: { uniqueItems: true, items: { type: 'string' } },
        fixed: { const: { pattern: '(a+)+' } },
      },
      $defs: { next: { $dynamicRef: '#node' } },
    }
    expect(slowKeywords(schema).map((line) => line.split(' ', 1)[0])).to.deep.equal([
      '/properties/a~1b/pattern',
      '/properties/const/items/uniqueItems',
      '/$defs/next/$dynamicRef',
    ])
  })

  it('are in no schema of the built-in catalogue, each of which takes constant time', () => {
    for (const { key, schema } of builtInCatalogue.eventKeys) {
      if (schema === null) continue
      expect(slowKeywords(schema), key).to.deep.equal([])
      expect(takesConstantTime(schema), key).to.equal(true)
    }
  })

  it('are not among the formats', () => {
    const ajv = new Ajv2020()
    ajvFormats.default(ajv, [...PAYLOAD_FORMATS])
    const parts = [
      'a',
      'a.',
      'a-',
      'a@',
      'a:',
      '1:',
      '::',
      'http://',
      'http://a/',
      'a:%20',
      '%',
      'P1D',
      'P',
      '1',
      '-',
      'a@a.',
      'http://a@',
    ]
    for (const format of PAYLOAD_FORMATS) {
      const validate = ajv.compile({ type: 'string', format })
      for (const part of parts) {
        const startedAt = process.cpuUsage()
        for (const start of ['', 'http://', 'a@', 'a:'])
          validate(`${start}${part.repeat(250_000 / part.length)}\n`)
        expect(process.cpuUsage(startedAt).user, `${format} ${part}`).to.be.below(MAX_CPU_US)
      }
    }
  })
})
