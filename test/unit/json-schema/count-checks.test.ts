import { expect } from 'chai'
import { isQuicklyChecked } from '../../../src/json-schema/count-checks.ts'

/** Processor time, in microseconds. */
const MAX_CPU_US = 1_000_000

const list = (length: number, item: unknown) => Array.from({ length }, () => item)
const required = list(12, 0).map((_, index) => `field${index}`)
const tree = { type: 'object', properties: { children: { type: 'array', items: { $ref: '#' } } } }
const doubling = Object.fromEntries(
  list(40, 0).map((_, index) => {
    const next = { $ref: `#/$defs/d${index + 1}` }
    return [`d${index}`, index === 39 ? { type: 'object' } : { allOf: [next, next] }]
  }),
)

const cases: readonly [title: string, schema: object, quick: unknown, costly: unknown][] = [
  ['required fields', { items: { type: 'object', required } }, list(100, {}), list(80_000, {})],
  [
    'branches',
    { items: { oneOf: list(20, { type: 'integer', minimum: 1, maximum: 0 }) } },
    list(100, 7),
    list(125_000, 7),
  ],
  ['nested lists', { items: { items: { type: 'string' } } }, list(10, list(10, 1)), list(200, list(200, 1))],
  ['contained items', { contains: { const: 1 } }, list(100, 2), list(20_000, 2)],
  [
    'members',
    { additionalProperties: { type: 'string' } },
    { a: 1 },
    Object.fromEntries(list(6_000, 0).entries()),
  ],
  [
    'unknown members',
    { additionalProperties: false },
    { a: 1 },
    Object.fromEntries(list(12_000, 0).entries()),
  ],
  [
    'names of members',
    { propertyNames: { maxLength: 1 } },
    { a: 1 },
    Object.fromEntries(list(6_000, 0).entries()),
  ],
  [
    'patterns of members',
    { patternProperties: { '^a': {}, '^b': {} } },
    { a: 1 },
    Object.fromEntries(list(6_000, 0).entries()),
  ],
  [
    'unevaluated members',
    { unevaluatedProperties: false },
    { a: 1 },
    Object.fromEntries(list(12_000, 0).entries()),
  ],
  ['texts', { items: { allOf: list(50, { pattern: '^a' }) } }, ['aa'], ['a'.repeat(100_000)]],
  ['a tree', tree, { children: [{ children: [{}] }] }, { children: list(5_000, {}) }],
  ['a text with an enumeration', { items: { enum: list(500, 'x') } }, ['a'], list(100, 'a')],
]

describe('the number of checks of a value', () => {
  for (const [title, schema, quick, costly] of cases)
    it(`is counted for ${title}`, () => {
      expect(isQuicklyChecked(schema, quick)).to.equal(true)
      expect(isQuicklyChecked(schema, costly)).to.equal(false)
    })

  it('ends at its limit where references double, go in a circle, or lead nowhere', () => {
    const circle = { $ref: '#/$defs/a', $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }] } } }
    for (const schema of [{ $ref: '#/$defs/d0', $defs: doubling }, circle, { $ref: '#/nothing' }]) {
      const startedAt = process.cpuUsage()
      expect(isQuicklyChecked(schema, {})).to.equal(false)
      expect(process.cpuUsage(startedAt).user).to.be.below(MAX_CPU_US)
    }
  })

  it('follows references by pointer and by anchor', () => {
    const byPointer = { $ref: '#/$defs/a~1b', $defs: { 'a/b': { items: { type: 'string' } } } }
    const byAnchor = { $ref: '#line', $defs: { a: { $anchor: 'line', items: { type: 'string' } } } }
    for (const schema of [byPointer, byAnchor]) {
      expect(isQuicklyChecked(schema, list(10, 1))).to.equal(true)
      expect(isQuicklyChecked(schema, list(10_000, 1))).to.equal(false)
    }
  })

  it('does not grow with what the schema does not look at', () => {
    const schema = { type: 'object', properties: { id: { type: 'string' } } }
    expect(isQuicklyChecked(schema, { id: 'a', extra: list(100_000, 1) })).to.equal(true)
  })
})
