import { createECDH, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { insertRetryJob } from '../../src/db/queries/retry-jobs.ts'
import { upsertPushSubscription } from '../../src/db/queries/push-subscriptions.ts'
import type { Route } from '../../src/http/route.ts'
import { routes } from '../../src/http/routes/index.ts'
import { newId } from '../../src/ids.ts'
import type { ApiResponse } from '../helpers/api.ts'
import { createMember, createWebhookRow, publishRow, type TestMember } from '../helpers/factories.ts'
import { useApi } from '../helpers/use-api.ts'

/** What a route is called with: a body, a query, and the permissions beyond its own that this call asks for. */
type Call = { body?: unknown; query?: string; also?: string[]; state?: 'failed' | 'waiting' }

const EVENT_KEY = 'customer:created'
const READ_EVENT = 'customer:read'

const pushSubscription = (): object => {
  const keys = createECDH('prime256v1')
  keys.generateKeys()
  return {
    endpoint: `https://push.browser.com/${randomBytes(8).toString('hex')}`,
    keys: { p256dh: keys.getPublicKey('base64url'), auth: randomBytes(16).toString('base64url') },
  }
}

/** Every route, by operation. A new route without a line here fails the test. */
const CALLS: Record<string, () => Call> = {
  getHealth: () => ({}),
  getReadiness: () => ({}),
  getOpenApi: () => ({}),
  listEventKeys: () => ({}),
  listWebhooks: () => ({}),
  createWebhook: () => ({
    body: { url: 'https://hooks.customer.com/', subscribedEventKeys: [EVENT_KEY], enabled: true },
    also: [READ_EVENT],
  }),
  getWebhook: () => ({}),
  updateWebhook: () => ({ body: { enabled: false }, also: [READ_EVENT] }),
  deleteWebhook: () => ({}),
  getSigningSecret: () => ({ also: [READ_EVENT] }),
  getDeliveryStats: () => ({}),
  listDeliveries: () => ({}),
  getDelivery: () => ({ also: [READ_EVENT] }),
  retryDeliveries: () => ({ body: { mode: 'failed' } }),
  getRetryJob: () => ({}),
  retryDelivery: () => ({}),
  discardDelivery: () => ({ state: 'failed' }),
  discardFailed: () => ({}),
  testWebhook: () => ({}),
  listIncidents: () => ({}),
  publishEvent: () => ({ body: { event: EVENT_KEY, data: { id: 'cus_1' } } }),
  getEvent: () => ({ also: ['event:publish'] }),
  streamEvents: () => ({ query: `?events=${EVENT_KEY}`, also: [READ_EVENT] }),
  createStreamTicket: () => ({}),
  listPushSubscriptions: () => ({}),
  createPushSubscription: () => ({ body: pushSubscription() }),
  deletePushSubscription: () => ({}),
  deletePushSubscriptions: () => ({}),
  listAudit: () => ({}),
  getOverview: () => ({}),
  getActivity: () => ({}),
  signIn: () => ({}),
  getSession: () => ({}),
  signOut: () => ({}),
}

describe('who may call what', () => {
  const suite = useApi()
  let cells = 0
  after(() => process.stdout.write(`      ${routes.length} routes × 6 callers: ${cells} cells checked\n`))

  /** One organisation with one of everything that paths name. */
  async function createWorld(call: Call) {
    const { dataSource } = suite.database
    const full = await createMember(dataSource)
    const { organisationId } = full
    const url = 'https://hooks.customer.com/'
    const webhook = await createWebhookRow(dataSource, {
      organisationId,
      url,
      subscribedEventKeys: [EVENT_KEY],
    })
    const [delivery] = await publishRow(dataSource, organisationId)
    await dataSource.query('UPDATE delivery SET state = $2 WHERE id = $1', [
      delivery!.deliveryId,
      call.state ?? 'waiting',
    ])
    const [event] = await dataSource.query<{ id: string }[]>(
      'SELECT event_id AS id FROM delivery WHERE id = $1',
      [delivery!.deliveryId],
    )
    const jobId = newId()
    const job = {
      id: jobId,
      organisationId,
      webhookId: null,
      mode: 'failed' as const,
      requestedBy: full.memberId,
    }
    await dataSource.transaction((manager) => insertRetryJob(manager, job))
    return {
      full,
      organisationId,
      webhookId: webhook.id,
      deliveryId: delivery!.deliveryId,
      eventId: event!.id,
      jobId,
    }
  }
  type World = Awaited<ReturnType<typeof createWorld>>

  /** The caller's own push subscription: nobody can name another's. */
  async function ownSubscription({ organisationId, memberId }: TestMember): Promise<string> {
    const target = { id: newId(), memberId, endpoint: 'https://push.browser.com/own', p256dh: 'p', auth: 'a' }
    await upsertPushSubscription(suite.database.dataSource, { ...target, organisationId }, 20)
    return target.id
  }

  function pathOf(route: Route, world: World, subscriptionId: string): string {
    const ids: Record<string, string> = {
      orgId: world.organisationId,
      id: route.path.includes('push-subscriptions') ? subscriptionId : world.webhookId,
      deliveryId: world.deliveryId,
      eventId: world.eventId,
      jobId: world.jobId,
    }
    return route.path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name]!)
  }

  async function ask(
    route: Route,
    world: World,
    call: Call,
    caller: TestMember | null,
  ): Promise<ApiResponse> {
    cells++
    const subscriptionId =
      route.operationId === 'deletePushSubscription' && caller !== null
        ? await ownSubscription(caller)
        : newId()
    const path = `${pathOf(route, world, subscriptionId)}${call.query ?? ''}`
    return suite.api.call(route.method, path, {
      ...(caller === null ? {} : { apiKey: caller.apiKey }),
      ...(call.body === undefined ? {} : { body: call.body }),
    })
  }

  it('has a line for every route', () => {
    expect(Object.keys(CALLS)).to.have.members(routes.map(({ operationId }) => operationId))
  })

  for (const route of routes) {
    const { operationId, access } = route
    const permission = access.kind === 'organisation' ? access.permission : null
    const isFullAccessOnly = permission === 'fullAccess'

    it(`${operationId}: ${route.method} ${route.path}`, async () => {
      const call = CALLS[operationId]!()
      const world = await createWorld(call)
      const { organisationId } = world
      const { dataSource } = suite.database
      const member = (permissions: string[]) => createMember(dataSource, { organisationId, permissions })

      const revoked = await createMember(dataSource, { organisationId })
      await dataSource.query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [revoked.memberId])
      for (const caller of [null, revoked]) {
        const { status, json } = await ask(route, world, call, caller)
        expect(status, 'no valid key').to.equal(access.kind === 'open' ? 200 : 401)
        if (status === 401) expect(json).to.include({ code: 'unauthenticated' })
      }

      const stranger = await ask(route, world, call, await createMember(dataSource))
      if (access.kind === 'organisation') expect(stranger.status, 'of another organisation').to.equal(404)
      else expect(stranger.status).to.be.within(200, 204)

      const without = await ask(route, world, call, await member(['something:else']))
      const needed = [...(permission === null ? [] : [permission]), ...(call.also ?? [])]
      if (access.kind !== 'organisation' || needed.length === 0) expect(without.status).to.be.within(200, 204)
      else {
        expect(without.status, without.text).to.equal(403)
        expect((without.json as { missingPermissions: string[] }).missingPermissions).not.to.be.empty
      }

      const allowed = await ask(route, world, call, await member(needed))
      if (isFullAccessOnly) expect(allowed.status).to.equal(403)
      else expect(allowed.status, allowed.text).to.be.within(200, 204)

      const again = await createWorld(call)
      const unlimited = await ask(route, again, call, again.full)
      expect(unlimited.status, unlimited.text).to.be.within(200, 204)
    })
  }

  for (const route of routes.filter(({ path }) => /:(?!orgId)\w+/.test(path))) {
    it(`${route.operationId}: a foreign id answers exactly as one that never was`, async () => {
      const call = CALLS[route.operationId]!()
      const [own, foreign] = [await createWorld(call), await createWorld(call)]
      const at = async (world: World, subscriptionId: string) => {
        const { status, text } = await suite.api.call(
          route.method,
          pathOf(route, { ...world, organisationId: own.organisationId }, subscriptionId),
          { apiKey: own.full.apiKey, ...(call.body === undefined ? {} : { body: call.body }) },
        )
        return { status, text }
      }
      const nobodys = { ...own, webhookId: newId(), deliveryId: newId(), eventId: newId(), jobId: newId() }
      const unknown = await at(nobodys, newId())
      expect(unknown.status).to.equal(404)
      expect(await at(foreign, await ownSubscription(foreign.full))).to.deep.equal(unknown)
      // Half foreign: the own webhook with somebody else's delivery.
      if (route.path.includes(':deliveryId'))
        expect(await at({ ...own, deliveryId: foreign.deliveryId }, newId())).to.deep.equal(
          await at({ ...own, deliveryId: newId() }, newId()),
        )
    })
  }
})
