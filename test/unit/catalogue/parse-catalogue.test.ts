import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'
import { parseCatalogue, printCatalogue } from '../../../src/catalogue/parse-catalogue.ts'
import { rejectedProblemsOf } from '../../helpers/problems-of.ts'

const entry = { key: 'order:shipped', meaning: 'Order shipped' }
const withEntry = (change: object) => ({ eventKeys: [{ ...entry, ...change }] })
const withSchema = (schema: unknown, example: unknown = {}) => withEntry({ schema, example })
const withProperty = (property: object) => withSchema({ type: 'object', properties: { a: property } })

/** Each `$ref` doubles the work of the one before. */
const doubling = Object.fromEntries(
  Array.from({ length: 40 }, (_, index) => {
    const next = { $ref: `#/$defs/d${index + 1}` }
    return [`d${index}`, index === 39 ? { type: 'object' } : { allOf: [next, next] }]
  }),
)

const SCHEMA = '/eventKeys/0/schema'

/** What is wrong with a document, and the problems it is refused with. A text stands for itself. */
const bad: readonly [title: string, document: unknown, problems: readonly string[]][] = [
  ['text that is no JSON', '{', ['is not valid JSON: ']],
  ['an empty file', '', ['is not valid JSON: ']],
  ['a list', [], ['/ must be an object']],
  ['no event keys', { eventKeys: [] }, ['/eventKeys must have at least 1 item']],
  [
    'unknown fields',
    { ...withEntry({ colour: 'red' }), more: 1 },
    ['/more is not a', '/eventKeys/0/colour is not a'],
  ],
  [
    'missing fields',
    { eventKeys: [{}] },
    ['/eventKeys/0/key is required', '/eventKeys/0/meaning is required'],
  ],
  ...[
    'order',
    'order:',
    ':paid',
    'order shipped:x',
    '*',
    '__proto__',
    'order:9',
    `a:${'b'.repeat(99)}`,
    'é:b',
  ].map((key): [string, unknown, string[]] => [
    `the key ${key}`,
    withEntry({ key }),
    ['/eventKeys/0/key must '],
  ]),
  [
    'the key of test events',
    withEntry({ key: 'webhook:test' }),
    ['/eventKeys/0/key "webhook:test" is the key of'],
  ],
  ['a key twice', { eventKeys: [entry, entry] }, ['/eventKeys/1/key "order:shipped" is in the list already']],
  [
    'members twice',
    '{"eventKeys":[{"key":"a:b","key":"a:c","meaning":"x","schema":{"type":"object","t\\u0079pe":"object"},"example":{}}]}',
    ['/eventKeys/0/key stands there twice', '/eventKeys/0/schema/type stands there twice'],
  ],
  [
    'a permission without an entity',
    withEntry({ permission: 'fullAccess' }),
    ['/eventKeys/0/permission must '],
  ],
  ['a meaning of two lines', withEntry({ meaning: 'a\nb' }), ['/eventKeys/0/meaning must ']],
  ['a schema without an example', withEntry({ schema: {} }), ['/eventKeys/0/example is required']],
  ['a schema that is a text', withSchema('object'), [`${SCHEMA} must be an object or null`]],
  ['a type that is none', withSchema({ type: 'objet' }), [`${SCHEMA}/type must be`]],
  [
    'bad keywords in several places',
    withSchema({ type: 'objet', properties: { a: { minLength: -1 } } }),
    [`${SCHEMA}/type must be`, `${SCHEMA}/properties/a/minLength must be`],
  ],
  [
    'unknown keywords and formats',
    withProperty({ type: 'string', typ: 1, format: 'telephone' }),
    [`${SCHEMA} unknown keyword: "typ"`, `${SCHEMA} unknown format "telephone"`],
  ],
  ['a keyword without its type', withProperty({ minLength: 1 }), [`${SCHEMA} missing type "string"`]],
  ['a pattern that is none', withProperty({ type: 'string', pattern: '(' }), [`${SCHEMA} Invalid regular`]],
  [
    'another draft',
    withSchema({ $schema: 'http://json-schema.org/draft-07/schema#' }),
    [`${SCHEMA}/$schema must be`],
  ],
  ...['http://127.0.0.1/s', 'file:///etc/passwd', 'https://json-schema.org/draft/2020-12/schema'].map(
    ($ref): [string, unknown, string[]] => [
      `a reference to ${$ref}`,
      withProperty({ $ref }),
      [`${SCHEMA}/properties/a/$ref must begin with #`],
    ],
  ),
  ['a schema with a name', withSchema({ $id: 'file:///srv/s.json' }), [`${SCHEMA}/$id is not allowed`]],
  [
    'a reference to nothing',
    withSchema({ $ref: '#/$defs/a' }),
    [`${SCHEMA}/$ref refers to nothing: #/$defs/a`],
  ],
  [
    'references in a circle',
    withSchema({ $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }),
    [`${SCHEMA} refers to itself without an end`],
  ],
  [
    'an example that does not fit',
    withSchema({ type: 'object', properties: { n: { type: 'integer' } }, required: ['id'] }, { n: 'one' }),
    [
      '/eventKeys/0/example/id is required, by its schema',
      '/eventKeys/0/example/n must be a whole number, by',
    ],
  ],
  [
    'an example that takes too long',
    withSchema({ $ref: '#/$defs/d0', $defs: doubling }),
    ['/eventKeys/0/example takes too long to check'],
  ],
  [
    'deep nesting',
    `{"eventKeys":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    ['is nested deeper than 64'],
  ],
  [
    'problems of every kind at once',
    {
      eventKeys: [{ ...entry, schema: { type: 'x' }, example: {} }, { ...entry, key: 'webhook:test' }, entry],
    },
    [`${SCHEMA}/type must be`, '/eventKeys/1/key "webhook:test" is', '/eventKeys/2/key "order:shipped" is'],
  ],
]

describe('a catalogue document', () => {
  for (const [title, document, problems] of bad) {
    it(`is refused with ${title}`, async () => {
      const text = typeof document === 'string' ? document : JSON.stringify(document)
      const found = await rejectedProblemsOf(parseCatalogue(text))
      expect(found, found.join('\n')).to.have.lengthOf(problems.length)
      for (const problem of problems)
        expect(
          found.some((line) => line.startsWith(problem)),
          `${problem} in ${found.join('\n')}`,
        ).to.equal(true)
    })
  }

  it('has defaults: <entity>:read, subscribable, any object', async () => {
    const catalogue = await parseCatalogue(JSON.stringify(withEntry({})))
    const { example, ...found } = catalogue.find('order:shipped')!
    expect(found).to.deep.equal({ ...entry, permission: 'order:read', subscribable: true, schema: null })
    expect(catalogue.validatePayload('order:shipped', example)).to.deep.equal([])
    expect(catalogue.validatePayload('order:shipped', { any: [1, null] })).to.deep.equal([])
    expect(catalogue.isSubscribable('order:shipped')).to.equal(true)
  })

  it('replaces the built-in event keys, and names its own permissions', async () => {
    const { eventKeys, find, permissionFor } = await parseCatalogue(
      JSON.stringify(withEntry({ permission: 'payroll:read' })),
    )
    expect(eventKeys.map(({ key }) => key)).to.deep.equal(['order:shipped'])
    expect(find('invoice:paid')).to.equal(undefined)
    expect(permissionFor('order:shipped')).to.equal('payroll:read')
  })

  it('requires full access for a key that it lacks, and webhook:read for test events', async () => {
    const { permissionFor } = await parseCatalogue(JSON.stringify(withEntry({})))
    expect([permissionFor('order:gone'), permissionFor('webhook:test')]).to.deep.equal([
      'fullAccess',
      'webhook:read',
    ])
  })

  it('is the same after it was printed and read again, the built-in one too', async () => {
    const again = await parseCatalogue(printCatalogue(builtInCatalogue))
    expect(again.eventKeys).to.deep.equal(JSON.parse(JSON.stringify(builtInCatalogue.eventKeys)))
    expect(printCatalogue(again)).to.equal(printCatalogue(builtInCatalogue))
  })

  it('may use references within a schema, and names of keywords as names of fields', async () => {
    const schema = {
      type: 'object',
      properties: {
        $ref: { type: 'string' },
        $id: { type: 'string' },
        pattern: { type: 'string' },
        first: { $ref: '#/$defs/line' },
        const: { const: { $ref: 'https://elsewhere.example/' } },
      },
      $defs: {
        line: { type: 'object', required: ['n'], properties: { n: { type: 'integer' } } },
      },
    }
    const { validatePayload } = await parseCatalogue(JSON.stringify(withSchema(schema, { first: { n: 1 } })))
    expect(validatePayload('order:shipped', { first: { n: 'x' }, pattern: 'y' })).to.deep.equal([
      { pointer: '/data/first/n', code: 'wrong_type', detail: 'must be a whole number' },
    ])
  })
})
