import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'

type Schema = { enum?: unknown; const?: unknown; properties?: Record<string, Schema> }

/** Spec 2.4: everything that may be sent. */
const CUSTOMER_TYPES = ['STANDARD', 'WORKER_RENTAL_CARAVAN', 'WORKER_TOWING_CARAVAN']
const INVOICE_STATUSES = ['DRAFT', 'BOOKED']
const INVOICE_PAYMENT_STATUSES = ['UNPAID', 'PARTIALLY_PAID', 'PENDING', 'PAID']
const PAYMENT_STATUSES =
  'PENDING AUTHORIZED PAID CANCELED FAILED EXPIRED REFUNDED PARTIALLY_REFUNDED CHARGED_BACK'.split(' ')
const PAYMENT_CHANNELS = ['MANUAL', 'BANK_TRANSFER', 'TERMINAL', 'ONLINE', 'MANDATE']
const CONTROLLER_TYPES = ['ACCESS', 'SHOWER', 'CHARGE_POINT']
const NFC_TAG_TYPES = ['CARD', 'BRACELET', 'STICKER', 'KEY_FOB']

/** The same field of several events of one entity. */
const each = (entity: string, actions: string, pointer: string, values: readonly string[]) =>
  actions.split(' ').map((action) => [`${entity}:${action}`, pointer, values] as const)

const INVOICE_ACTIONS = 'created updated deleted moved-to-customer'

/** Field by field, wherever the field stands. */
const enums = [
  ...each('customer', 'created updated deleted', '/customerType', CUSTOMER_TYPES),
  ...each('invoice', INVOICE_ACTIONS, '/status', INVOICE_STATUSES),
  ...each('invoice', INVOICE_ACTIONS, '/paymentStatus', INVOICE_PAYMENT_STATUSES),
  ...each('invoice', 'paid', '/invoice/status', INVOICE_STATUSES),
  ...each('invoice', 'paid', '/payment/status', PAYMENT_STATUSES),
  ...each('invoice', 'paid', '/payment/channel', PAYMENT_CHANNELS),
  ...each('payment', 'created updated deleted', '/status', PAYMENT_STATUSES),
  ...each('payment', 'created updated deleted', '/channel', PAYMENT_CHANNELS),
  ...each('controller', 'created updated deleted', '/type', CONTROLLER_TYPES),
  ...each('nfc-tag', 'blocked presented unblocked updated', '/type', NFC_TAG_TYPES),
]

/** Events whose shape is not known (spec 6.3), of an entity with enumerations. */
const SHAPELESS = enums
  .map(([key]) => key)
  .filter((key) => !['customer:created', 'invoice:paid', 'nfc-tag:presented'].includes(key))

/** Of another entity, or of a part of one: their fields may have the same names. */
const OTHERS = [
  'customer:contact:created',
  'controller:adoption:approved',
  'controller:logs:submitted',
  'nfc-tag-transaction:changed',
  'payment-group:created',
  'payment-report:updated',
  'mandate:created',
]

const openStrings = [
  ['customer:created', '/status'],
  ['customer:updated', '/status'],
  ['invoice:paid', '/payment/method'],
  ['invoice:paid', '/payment/provider'],
  ['payment:created', '/method'],
  ['payment:updated', '/provider'],
] as const

const NAMES = { string: 'a string', number: 'a number', boolean: 'true or false' }

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

/** In UTC, without milliseconds or with more digits. */
const OTHER_UTC = ['2026-05-04T08:15:30Z', '2026-05-04T08:15:30.1Z', '2026-05-04T08:15:30.123456Z']
const UTC_WITH_MS = ['2026-05-04T08:15:30.000Z', '2026-12-31T23:59:59.999Z', '2028-02-29T00:00:00.001Z']
const NOT_UTC = [
  '2026-05-04T10:15:30.000+02:00',
  '2026-05-04T08:15:30.000+00:00',
  '2026-05-04T08:15:30.000-00:00',
  '2026-05-04T08:15:30.000',
  '2026-05-04T08:15:30.000z',
  '2026-05-04t08:15:30.000Z',
  '2026-05-04 08:15:30.000Z',
]
const NO_TIME = [
  '',
  'yesterday',
  '2026-05-04',
  '08:15:30.000Z',
  '1777882530',
  '4 May 2026',
  '2026-02-30T08:15:30.000Z',
  '2026-13-01T08:15:30.000Z',
  '2026-05-04T25:15:30.000Z',
  '2026-05-04T08:15:30.000Z\n',
]

const ADDRESSES = ['203.0.113.24', '0.0.0.0', '2001:db8::1', '::1', '::ffff:203.0.113.24', '2001:DB8::A']
const NO_ADDRESSES = [
  ...['', 'not-an-ip', '256.1.1.1', '1.2.3', '1.2.3.4.5', '203.0.113.24:80', '203.0.113.0/24'],
  ...[':', ':::', '2001:db8::g', '1:2:3:4:5:6:7:8:9', '[::1]', ' 203.0.113.24', 'localhost'],
]

const formats = [
  ['customer:created', '/createdAt', UTC_WITH_MS, [...OTHER_UTC, ...NOT_UTC, ...NO_TIME]],
  ['customer:created', '/updatedAt', UTC_WITH_MS, [...OTHER_UTC, ...NOT_UTC, ...NO_TIME]],
  ['customer:created', '/country', ['BE', 'NL'], ['be', 'BEL', 'B', 'BE\n']],
  ['invoice:paid', '/invoice/paidDate', [...UTC_WITH_MS, ...OTHER_UTC], [...NOT_UTC, ...NO_TIME]],
  ['invoice:paid', '/payment/paidAt', [...UTC_WITH_MS, ...OTHER_UTC], [...NOT_UTC, ...NO_TIME]],
  ['controller:adoption:requested', '/efuseId', ['0af9', '0AF9'], ['', '0x12', 'ghij']],
  ['controller:adoption:requested', '/requestedFromIp', ADDRESSES, NO_ADDRESSES],
  ['nfc-tag:presented', '/uid', ['04a2b91c', '04A2B91C'], ['', '04 A2', 'tag']],
  ['nfc-tag:presented', '/blockedAt', ['2026-05-04T08:15:30.000Z', null], ['never']],
] as const

const { eventKeys, find, validatePayload: validate } = builtInCatalogue

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
          {
            pointer: '/data',
            code: 'wrong_type',
            detail: `must be an object${data === null ? ', not null' : ''}`,
          },
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
      for (const value of ['OTHER', values[0]!.toLowerCase(), '', null, 1]) {
        expect(validate(key, changed(key, pointer, value))).to.deep.equal([
          {
            pointer: `/data${pointer}`,
            code: 'not_allowed_value',
            detail: `must be one of ${values.join(', ')}${value === null ? ', not null' : ''}`,
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
        {
          pointer: '/data/invoice/paymentStatus',
          code: 'not_allowed_value',
          detail: `must be one of PAID${status === null ? ', not null' : ''}`,
        },
      ])
    }
  })

  it('says that a null is none of the values of a text, number or choice', () => {
    for (const [key, type, pointers] of typed)
      for (const pointer of pointers.filter((at) => at !== '/blockedAt'))
        expect(validate(key, changed(key, pointer, null)), `${key} ${pointer}`).to.deep.equal([
          { pointer: `/data${pointer}`, code: 'wrong_type', detail: `must be ${NAMES[type]}, not null` },
        ])
  })

  it('checks nothing but the enumerations where the shape is not known', () => {
    for (const key of SHAPELESS) {
      expect(validate(key, {}), key).to.deep.equal([])
      const data = {
        id: 7,
        invoice: { status: 'X' },
        payment: { status: 'X' },
        createdAt: 'now',
        email: null,
      }
      expect(validate(key, data), key).to.deep.equal([])
    }
  })

  it('restricts the values of no other field', () => {
    const invoicePaid = ['invoice:paid', '/invoice/paymentStatus'] as const
    const known = [...enums, invoicePaid].map(([key, pointer]) => `${key} ${pointer}`)
    const restricted = eventKeys.flatMap(({ key, schema }) => restrictedFields(`${key} `, schema ?? {}))
    expect(restricted).to.have.members(known)
  })

  it('leaves other entities and parts of one alone, whatever their fields are called', () => {
    const fields = ['customerType', 'status', 'paymentStatus', 'channel', 'type']
    for (const key of OTHERS)
      expect(validate(key, Object.fromEntries(fields.map((name) => [name, 'ANY']))), key).to.deep.equal([])
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

/** The fields below `schema` that allow certain values only. */
function restrictedFields(path: string, schema: Schema): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) =>
    inner.enum === undefined && inner.const === undefined
      ? restrictedFields(`${path}/${name}`, inner)
      : [`${path}/${name}`],
  )
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
