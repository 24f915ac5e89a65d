import { expect } from 'chai'
import {
  createWebhookRow,
  createMember,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { useApi } from '../../helpers/api/api.ts'
import { routes } from '../../../src/http/routes/index.ts'
import { attempt } from '../deliveries/delivery-rows.ts'

/** What `publishRow` puts into the payload. */
const PAYLOAD = 'cus_1'
const ANSWER = 'answer-canary'
const SENTENCE = 'The endpoint answered HTTP 503.'

type Member = { permissions: readonly string[] | undefined; seesPayload: boolean; seesError: boolean }

/** Members by what they may see of an event `customer:created` and its delivery. */
const MEMBERS: Record<string, Member> = {
  nothing: { permissions: ['something:else'], seesPayload: false, seesError: false },
  publisher: { permissions: ['event:publish'], seesPayload: false, seesError: false },
  reader: { permissions: ['webhook:read'], seesPayload: false, seesError: true },
  'publishing reader': {
    permissions: ['webhook:read', 'event:publish'],
    seesPayload: false,
    seesError: true,
  },
  'manager of other keys': {
    permissions: ['webhook:read', 'webhook:manage', 'event:publish', 'invoice:read'],
    seesPayload: false,
    seesError: true,
  },
  'reader of the key': { permissions: ['customer:read'], seesPayload: true, seesError: false },
  'reader of webhooks and of the key': {
    permissions: ['webhook:read', 'customer:read'],
    seesPayload: true,
    seesError: true,
  },
  'full access': { permissions: undefined, seesPayload: true, seesError: true },
}

type Event = {
  payload: object | null
  traceId: string
  deliveries: { state: string; latestAttempt: { error: string | null; statusCode: number } }[]
}
type Latest = { data: { latestAttempt: { error: string | null; payload?: object | null } }[] }

describe('what a member sees of an event', () => {
  const suite = useApi()
  let ids: Record<string, string>

  before(async () => {
    const { dataSource } = suite.database
    const { organisationId } = await createMember(dataSource)
    const url = 'https://hooks.customer.com/'
    const webhook = await createWebhookRow(dataSource, { organisationId, url })
    const [delivery] = await publishRow(dataSource, organisationId)
    await attempt(dataSource, delivery!, 1, {
      error: SENTENCE,
      response: { headers: { server: ANSWER }, body: ANSWER, truncated: false },
    })
    const [row] = await dataSource.query<{ event_id: string }[]>('SELECT event_id FROM delivery')
    ids = {
      orgId: organisationId,
      id: webhook.id,
      deliveryId: delivery!.deliveryId,
      eventId: row!.event_id,
    }
  })

  const memberWith = (permissions: readonly string[] | undefined): Promise<TestMember> =>
    createMember(suite.database.dataSource, {
      organisationId: ids['orgId']!,
      ...(permissions === undefined ? {} : { permissions: [...permissions] }),
    })

  const get = (path: string, { apiKey }: TestMember) =>
    suite.api.call(
      'GET',
      path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? name),
      { apiKey },
    )

  const doors = routes.filter(
    ({ method, path, access }) => method === 'GET' && access.kind === 'organisation' && !/:jobId/.test(path),
  )

  for (const [who, { permissions, seesPayload, seesError }] of Object.entries(MEMBERS)) {
    const may = (sees: boolean): string => (sees ? 'shows' : 'never shows')

    it(`${may(seesPayload)} payload and endpoint's answer to: ${who}`, async () => {
      const member = await memberWith(permissions)
      const shown = new Set<string>()
      for (const { path } of doors) {
        const { text } = await get(path, member)
        if (text.includes(PAYLOAD)) shown.add('payload')
        if (text.includes(ANSWER)) shown.add('answer')
        if (text.includes(SENTENCE)) shown.add('error')
      }
      expect(shown.has('payload')).to.equal(seesPayload)
      expect(shown.has('answer')).to.equal(seesPayload && permissions?.includes('webhook:read') !== false)
      expect(shown.has('error')).to.equal(seesError)
    })

    it(`${may(seesError)} the error of an attempt in statistics, overview and list to: ${who}`, async () => {
      const member = await memberWith(permissions)
      for (const door of ['delivery-stats', 'overview', ':id/deliveries']) {
        const { status, json } = await get(`/api/orgs/:orgId/webhooks/${door}`, member)
        expect(status, door).to.equal(seesError ? 200 : 403)
        if (seesError) expect((json as Latest).data[0]!.latestAttempt.error, door).to.equal(SENTENCE)
      }
    })

    it(`reads the event with its deliveries' states, and ${may(seesPayload)} its payload to: ${who}`, async () => {
      const { status, json } = await get('/api/orgs/:orgId/events/:eventId', await memberWith(permissions))
      if (!seesPayload && permissions?.includes('event:publish') !== true) {
        expect(status).to.equal(403)
        return
      }
      const { payload, traceId, deliveries } = json as Event
      expect(status).to.equal(200)
      expect(payload === null).to.equal(!seesPayload)
      expect(traceId).to.equal('trace-1')
      expect(deliveries[0]).to.include({ state: 'waiting' })
      expect(deliveries[0]!.latestAttempt.statusCode).to.equal(503)
      expect(deliveries[0]!.latestAttempt.error).to.equal(seesError ? SENTENCE : null)
    })
  }
})
