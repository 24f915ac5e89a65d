import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { expect } from 'chai'
import { toFieldErrors } from '../../../src/json-schema/field-errors.ts'
import {
  NO_NUL_PATTERN,
  PLAIN_TEXT_PATTERN,
  PLAIN_TEXT_RULE,
  VISIBLE_ASCII_PATTERN,
} from '../../../src/domain/text-rules.ts'
import { UUID_PATTERN } from '../../../src/ids.ts'
import type { FieldError } from '../../../src/problem-error.ts'

type Row = [schema: object, value: unknown, pointer: string, code: string, detail: string]

const open = { type: 'object', properties: { a: {} } }

const rows: Row[] = [
  [{ ...open, required: ['a'] }, {}, '/a', 'required', 'is required'],
  [{ ...open, properties: { 'a/b~c': {} }, required: ['a/b~c'] }, {}, '/a~1b~0c', 'required', 'is required'],
  [{ ...open, dependentRequired: { b: ['a'] } }, { b: 1 }, '/a', 'required', 'is required'],
  [{ ...open, additionalProperties: false }, { b: 1 }, '/b', 'unknown_field', 'is not a known field'],
  [
    { ...open, additionalProperties: false },
    { 'x/y~z': 1 },
    '/x~1y~0z',
    'unknown_field',
    'is not a known field',
  ],
  [{ ...open, unevaluatedProperties: false }, { b: 1 }, '/b', 'unknown_field', 'is not a known field'],
  [{ type: 'string' }, 1, '', 'wrong_type', 'must be a string'],
  [{ type: 'integer' }, 1.5, '', 'wrong_type', 'must be a whole number'],
  [{ type: 'boolean' }, 'true', '', 'wrong_type', 'must be true or false'],
  [{ type: ['string', 'null'] }, 1, '', 'wrong_type', 'must be a string or null'],
  [
    { type: 'object', additionalProperties: { type: 'array' } },
    { 'x/y~z': 1 },
    '/x~1y~0z',
    'wrong_type',
    'must be an array',
  ],
  [{ enum: ['DRAFT', 'BOOKED'] }, 'PAID', '', 'not_allowed_value', 'must be one of DRAFT, BOOKED'],
  [{ enum: ['A', 1, null] }, 'B', '', 'not_allowed_value', 'must be one of A, 1, null'],
  [{ const: '*' }, 'B', '', 'not_allowed_value', 'must be *'],
  [{ type: 'string', format: 'date-time' }, 'now', '', 'wrong_format', 'must be a valid date-time'],
  [{ type: 'string', pattern: '^a+$' }, 'b', '', 'wrong_format', 'must match the pattern ^a+$'],
  [
    { type: 'string', pattern: PLAIN_TEXT_PATTERN },
    'a\u202e',
    '',
    'wrong_format',
    `must be text ${PLAIN_TEXT_RULE}`,
  ],
  [
    { type: 'string', pattern: VISIBLE_ASCII_PATTERN },
    'a b',
    '',
    'wrong_format',
    'must be visible ASCII characters without a space',
  ],
  [
    { type: 'string', pattern: NO_NUL_PATTERN },
    '\u0000',
    '',
    'wrong_format',
    'must not contain the character NUL',
  ],
  [{ type: 'string', pattern: UUID_PATTERN }, 'x', '', 'wrong_format', 'must be a UUID'],
  [{ type: 'string', minLength: 1 }, '', '', 'too_short', 'must have at least 1 character'],
  [{ type: 'string', maxLength: 2 }, 'abc', '', 'too_long', 'must have at most 2 characters'],
  [{ type: 'array', minItems: 1 }, [], '', 'too_few', 'must have at least 1 item'],
  [{ type: 'array', maxItems: 2 }, [1, 2, 3], '', 'too_many', 'must have at most 2 items'],
  [{ type: 'object', minProperties: 1 }, {}, '', 'too_few', 'must have at least 1 field'],
  [{ type: 'object', maxProperties: 1 }, { a: 1, b: 2 }, '', 'too_many', 'must have at most 1 field'],
  [{ type: 'number', minimum: 1 }, 0, '', 'too_small', 'must be at least 1'],
  [{ type: 'number', exclusiveMinimum: 1 }, 1, '', 'too_small', 'must be more than 1'],
  [{ type: 'number', maximum: 1 }, 2, '', 'too_large', 'must be at most 1'],
  [{ type: 'number', exclusiveMaximum: 1 }, 1, '', 'too_large', 'must be less than 1'],
  [
    { type: 'array', uniqueItems: true },
    [{ a: 1 }, 2, { a: 1 }],
    '/2',
    'duplicate',
    'is in the list already',
  ],
  [
    { type: 'array', items: { type: 'string' }, uniqueItems: true },
    ['a', 'b', 'c', 'b'],
    '/3',
    'duplicate',
    'is in the list already',
  ],
  [{ type: 'number', multipleOf: 2 }, 3, '', 'invalid', 'must be multiple of 2'],
  [{ not: {} }, 3, '', 'invalid', 'must NOT be valid'],
]

describe('toFieldErrors', () => {
  for (const [schema, value, pointer, code, detail] of rows) {
    it(`returns ${code} at "${pointer}" for ${JSON.stringify(value)} under ${JSON.stringify(schema)}`, () => {
      expect(check(schema, value)).to.deep.equal([{ pointer, code, detail }])
      expect(check({ properties: { in: { items: schema } } }, { in: [value] })).to.deep.equal([
        { pointer: `/in/0${pointer}`, code, detail },
      ])
    })
  }

  it('describes an error without a message', () => {
    const error = { keyword: 'unheardOf', instancePath: '/a', schemaPath: '#', params: {} }

    expect(toFieldErrors([error])).to.deep.equal([{ pointer: '/a', code: 'invalid', detail: 'is not valid' }])
  })

  it('never repeats the refused value, which may be private', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', maxLength: 3, pattern: '^x', enum: ['x'] } },
    }

    const errors = check(schema, { a: 'private words' })

    expect(errors).to.have.length(3)
    expect(JSON.stringify(errors)).not.to.contain('private')
  })
})

function check(schema: object, value: unknown): FieldError[] {
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true, strictTypes: false })
  ajvFormats.default(ajv)
  const validate = ajv.compile(schema)
  expect(validate(value)).to.equal(false)
  return toFieldErrors(validate.errors!)
}
