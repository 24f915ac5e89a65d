import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in.ts'
import { parseCatalogue, printCatalogue } from '../../../src/catalogue/parse-catalogue.ts'
import type { FieldError } from '../../../src/errors.ts'

/** Spec 2.4: field by field, everything that may be sent. */
const enums = [
  ['customer:created', '/customerType', ['STANDARD', 'WORKER_RENTAL_CARAVAN', 'WORKER_TOWING_CARAVAN']],
  ['invoice:paid', '/invoice/status', ['DRAFT', 'BOOKED']],
  [
    'invoice:paid',
    '/payment/status',
    'PENDING AUTHORIZED PAID CANCELED FAILED EXPIRED REFUNDED PARTIALLY_REFUNDED CHARGED_BACK'.split(' '),
  ],
  ['invoice:paid', '/payment/channel', ['MANUAL', 'BANK_TRANSFER', 'TERMINAL', 'ONLINE', 'MANDATE']],
  ['nfc-tag:presented', '/type', ['CARD', 'BRACELET', 'STICKER', 'KEY_FOB']],
  ['controller:created', '/type', ['ACCESS', 'SHOWER', 'CHARGE_POINT']],
  ['controller:updated', '/type', ['ACCESS', 'SHOWER', 'CHARGE_POINT']],
  ['controller:deleted', '/type', ['ACCESS', 'SHOWER', 'CHARGE_POINT']],
] as const

const openStrings = [
  ['customer:created', '/status'],
  ['invoice:paid', '/payment/method'],
  ['invoice:paid', '/payment/provider'],
] as const

const required = [
  ['customer:created', ['/id']],
  ['invoice:paid', ['/invoice', '/invoice/id', '/payment', '/payment/id']],
  ['controller:adoption:requested', ['/adoptionId', '/efuseId']],
  ['nfc-tag:presented', ['/id', '/uid']],
  ['organizationSettings:updated', ['/openingHoursChanged']],
] as const

/** Spec 6.3: the JSON type of every leaf; a value of another type is refused. */
const typed = [
  ['customer:created', 'number', ['/displayId']],
  [
    'customer:created',
    'string',
    '/id /firstName /lastName /email /phone /address /city /zipCode /country /status /createdAt /updatedAt'.split(
      ' ',
    ),
  ],
  ['invoice:paid', 'number', ['/invoice/amountTotal', '/payment/amount']],
  [
    'invoice:paid',
    'string',
    '/invoice/id /invoice/displayId /invoice/paidDate /invoice/customerId /payment/id /payment/method /payment/provider /payment/paidAt'.split(
      ' ',
    ),
  ],
  ['controller:adoption:requested', 'string', ['/adoptionId', '/efuseId', '/requestedFromIp']],
  ['controller:adoption:requested', 'boolean', ['/isNew']],
  ['nfc-tag:presented', 'string', ['/id', '/uid', '/blockedAt', '/customerId']],
  ['nfc-tag:presented', 'number', ['/balance']],
  ['organizationSettings:updated', 'boolean', ['/openingHoursChanged']],
] as const

const formats = [
  [
    'customer:created',
    '/createdAt',
    ['2026-05-04T08:15:30.000Z', '2026-05-04T08:15:30Z'],
    ['yesterday', '2026-05-04', '2026-02-30T08:15:30.000Z'],
  ],
  ['customer:created', '/updatedAt', ['2026-05-04T08:15:30.123Z'], ['', '1777882530']],
  ['customer:created', '/country', ['BE', 'NL'], ['be', 'BEL', 'B', 'BE\n']],
  ['invoice:paid', '/invoice/paidDate', ['2026-05-04T08:15:30.000Z'], ['4 May 2026']],
  ['invoice:paid', '/payment/paidAt', ['2026-05-04T08:15:30.000Z'], ['08:15:30']],
  ['controller:adoption:requested', '/efuseId', ['0af9', '0AF9'], ['', '0x12', 'ghij']],
  ['nfc-tag:presented', '/uid', ['04a2b91c', '04A2B91C'], ['', '04 A2', 'tag']],
  ['nfc-tag:presented', '/blockedAt', ['2026-05-04T08:15:30.000Z', null], ['never']],
] as const

const { eventKeys, find } = builtInCatalogue
const again = parseCatalogue(printCatalogue(builtInCatalogue))

/** The same by the built-in catalogue and by a file with what `posthorn catalogue print` prints. */
function validate(key: string, data: unknown): FieldError[] {
  const errors = builtInCatalogue.validatePayload(key, data)
  expect(again.validatePayload(key, data)).to.deep.equal(errors)
  return errors
}

describe('the payload validator', () => {
  for (const { key, example } of eventKeys) {
    it(`accepts the example of ${key}`, () => {
      expect(validate(key, example)).to.deep.equal([])
    })

    it(`accepts unlisted fields in ${key}`, () => {
      expect(validate(key, withExtras(example))).to.deep.equal([])
    })

    it(`refuses data of ${key} that is not an object`, () => {
      for (const data of [null, [], [example], 'text', 1, true]) {
        expect(validate(key, data)).to.deep.equal([
          { pointer: '/data', code: 'wrong_type', detail: 'must be an object' },
        ])
      }
    })
  }

  it('accepts any object for a key whose shape is not known', () => {
    expect(validate('call:created', {})).to.deep.equal([])
    expect(validate('call:created', { id: 1, status: ['any'] })).to.deep.equal([])
  })

  for (const [key, pointer, values] of enums) {
    it(`accepts each value of ${key} ${pointer}`, () => {
      for (const value of values) expect(validate(key, changed(key, pointer, value)), value).to.deep.equal([])
    })

    it(`refuses other values of ${key} ${pointer} and names those allowed`, () => {
      for (const value of ['OTHER', values[0].toLowerCase(), '', null, 1]) {
        expect(validate(key, changed(key, pointer, value))).to.deep.equal([
          {
            pointer: `/data${pointer}`,
            code: 'not_allowed_value',
            detail: `must be one of ${values.join(', ')}`,
          },
        ])
      }
    })
  }

  for (const [key, pointer] of openStrings) {
    it(`leaves ${key} ${pointer} open, since its values are not all known`, () => {
      expect(validate(key, changed(key, pointer, 'A_VALUE_OF_TOMORROW'))).to.deep.equal([])
    })
  }

  for (const [key, pointers] of required) {
    it(`requires ${pointers.join(', ')} for ${key}`, () => {
      for (const pointer of pointers) {
        expect(validate(key, changed(key, pointer, undefined))).to.deep.equal([
          { pointer: `/data${pointer}`, code: 'required', detail: 'is required' },
        ])
      }
    })

    it(`requires nothing else for ${key}`, () => {
      expect(validate(key, onlyPointers(key, pointers))).to.deep.equal([])
    })
  }

  for (const [key, type, pointers] of typed) {
    it(`checks the type of the ${type} fields of ${key}`, () => {
      for (const pointer of pointers) {
        const wrong = type === 'string' ? 17 : 'text'
        const [error, ...others] = validate(key, changed(key, pointer, wrong))
        expect(error, pointer).to.include({ pointer: `/data${pointer}`, code: 'wrong_type' })
        expect(others, pointer).to.deep.equal([])
      }
    })
  }

  for (const [key, pointer, good, bad] of formats) {
    it(`checks the format of ${key} ${pointer}`, () => {
      for (const value of good)
        expect(validate(key, changed(key, pointer, value)), String(value)).to.deep.equal([])
      for (const value of bad) {
        const errors = validate(key, changed(key, pointer, value))
        expect(
          errors.map(({ pointer: at, code }) => ({ at, code })),
          value,
        ).to.deep.equal([{ at: `/data${pointer}`, code: 'wrong_format' }])
      }
    })
  }

  it('refuses invoice:paid with a payment status other than PAID', () => {
    for (const status of ['UNPAID', 'PARTIALLY_PAID', 'PENDING', 'paid', '', null]) {
      expect(
        validate('invoice:paid', changed('invoice:paid', '/invoice/paymentStatus', status)),
      ).to.deep.equal([
        { pointer: '/data/invoice/paymentStatus', code: 'not_allowed_value', detail: 'must be one of PAID' },
      ])
    }
  })

  it('requires no field of a controller', () => {
    for (const key of ['controller:created', 'controller:updated', 'controller:deleted'])
      expect(validate(key, {})).to.deep.equal([])
  })

  it('names every bad field at once', () => {
    const errors = validate('invoice:paid', {
      invoice: { id: 1, paymentStatus: 'LATE' },
      payment: { id: 'pay_1', paidAt: 'now' },
    })

    expect(errors.map((error) => error.pointer)).to.have.members([
      '/data/invoice/id',
      '/data/invoice/paymentStatus',
      '/data/payment/paidAt',
    ])
  })
})

/** The example of `key` with the value at `pointer` replaced, or removed where `value` is undefined. */
function changed(key: string, pointer: string, value: unknown): object {
  const data = structuredClone(find(key)!.example)
  const path = pointer.slice(1).split('/')
  const last = path.pop()!
  const owner = path.reduce<object>((object, name) => Reflect.get(object, name) as object, data)
  if (value === undefined) Reflect.deleteProperty(owner, last)
  else Reflect.set(owner, last, value)
  return data
}

/** The example of `key` cut down to the fields at `pointers`. */
function onlyPointers(key: string, pointers: readonly string[]): object {
  const keep = (object: object, at: string): object =>
    Object.fromEntries(
      Object.entries(object)
        .filter(([name]) => pointers.includes(`${at}/${name}`))
        .map(([name, value]: [string, unknown]) => [
          name,
          isObject(value) ? keep(value, `${at}/${name}`) : value,
        ]),
    )
  return keep(find(key)!.example, '')
}

/** A copy with an unlisted field in every object of it. */
function withExtras(object: object): object {
  const copy = Object.entries(object).map(([name, value]: [string, unknown]) => [
    name,
    isObject(value) ? withExtras(value) : value,
  ])
  return { ...(Object.fromEntries(copy) as object), extra: { nested: [1, 'two', null] } }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
