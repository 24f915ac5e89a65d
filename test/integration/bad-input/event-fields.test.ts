import { expect } from 'chai'
import { describeBadInput, EVENTS, goodEvent, type BadInput } from '../../helpers/api/bad-input.ts'

const refused = (title: string, json: unknown, ...pointers: string[]): BadInput => ({
  title,
  path: EVENTS,
  json,
  pointers,
  status: 422,
  code: 'invalid_fields',
})
const withField = (title: string, fields: object, ...pointers: string[]): BadInput =>
  refused(title, { ...goodEvent, ...fields }, ...pointers)

const inputs: BadInput[] = [
  refused('an unknown event key', { event: 'invoice:eaten', data: {} }, '/event'),
  refused('* as event key', { event: '*', data: {} }, '/event'),
  refused('an event key with NUL', { event: 'customer:created\u0000', data: {} }, '/event'),
  refused('data without what identifies it', { event: 'customer:created', data: {} }, '/data/id'),
  refused(
    'data outside its enumerations',
    {
      event: 'invoice:paid',
      data: {
        invoice: { id: 'inv_1', status: 'EATEN', amountTotal: '1' },
        payment: { id: 'pay_1', channel: 'PIGEON' },
      },
    },
    '/data/invoice/status',
    '/data/invoice/amountTotal',
    '/data/payment/channel',
  ),
  withField('an extra field', { id: 'x', __proto: 1, deliveries: [] }, '/id', '/__proto', '/deliveries'),
  withField('a traceId with a control character', { traceId: 'a\u0007b' }, '/traceId'),
  withField('a traceId with NUL', { traceId: 'a\u0000' }, '/traceId'),
  withField('a traceId with white space', { traceId: 'a b' }, '/traceId'),
  withField('a spanId with NUL', { spanId: '\u0000' }, '/spanId'),
  withField(
    'a triggeredBy with extra fields',
    { triggeredBy: { id: 'mem_1', name: 'An', email: 'an@zon.example' } },
    '/triggeredBy/email',
  ),
  withField(
    'a triggeredBy with NUL in its fields',
    { triggeredBy: { id: 'mem\u0000', name: 'A\u0000n' } },
    '/triggeredBy/id',
    '/triggeredBy/name',
  ),
  refused(
    'several faults of every kind, naming each field',
    { event: 'nope', data: 1, timestamp: 'now', extra: true },
    '/event',
    '/data',
    '/timestamp',
    '/extra',
  ),
]

describeBadInput('an event that cannot be accepted', inputs, (world) => {
  it('names at most a hundred fields, however many are bad', async () => {
    const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, index]))
    const answer = await world().send({ path: EVENTS, json: { ...goodEvent, ...fields } })
    expect(answer.status).to.equal(422)
    expect((JSON.parse(answer.text) as { errors: unknown[] }).errors).to.have.lengthOf(100)
  })

  it('keeps nothing of an event that it refused', async () => {
    const { database, names } = world()
    const [row] = await database.dataSource.query<{ events: number }[]>(
      'SELECT count(*)::int AS events FROM event WHERE organisation_id = $1',
      [names['org']],
    )
    expect(row).to.deep.equal({ events: 1 })
  })
})
