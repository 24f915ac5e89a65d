import { expect } from 'chai'
import { upsertPushSubscription } from '../../../src/db/queries/push-subscriptions.ts'
import {
  createMember,
  createReplayRow,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { insertRetryJob } from '../../../src/db/queries/retry-jobs.ts'
import type { Route } from '../../../src/http/route.ts'
import { routes } from '../../../src/http/routes/index.ts'
import { newId } from '../../../src/ids.ts'
import { createRateLimits } from '../../../src/http/limits/rate-limits.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { type ApiResponse, useApi } from '../../helpers/api/api.ts'
import { asOperator } from '../../helpers/api/operator.ts'
import {
  type CallerName,
  CALLERS,
  OPERATORS,
  type Right,
  RIGHTS,
  URL_OF_WEBHOOK,
} from '../../helpers/api/rights.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'

/** What has broken parsers and databases in the place of an id. */
const NO_IDS = ['garbled', '%00', '1%27%20OR%201=1']

/** What a caller gets whom the table does not name. */
function refusalFor(caller: CallerName, { access }: Route): number {
  if (caller in OPERATORS) {
    const isForOperators =
      access.kind === 'operator' || (access.kind === 'organisation' && access.operatorScope)
    return isForOperators ? 403 : 401
  }
  if (access.kind === 'operator') return 401
  if (caller === 'none' || caller === 'revoked') return 401
  return caller === 'foreign' ? 404 : 403
}

/** Limits that no test here reaches. */
const rateLimits = createRateLimits(
  { management: 100_000, publish: 100_000, authFailures: 0, open: 0 },
  { metrics: createMetrics() },
)

describe('the access rights of the API', () => {
  const suite = useApi({ rateLimits })
  let cells = 0
  after(() =>
    process.stdout.write(`      ${routes.length} routes, ${RIGHTS.length} calls: ${cells} cells checked\n`),
  )

  /** One organisation with one of everything that paths name. */
  async function createWorld({ subscribedEventKeys, enabled = true, state = 'waiting' }: Right) {
    const { dataSource } = suite.database
    const full = await createMember(dataSource)
    const { organisationId } = full
    const webhook = await createWebhookRow(dataSource, {
      organisationId,
      url: URL_OF_WEBHOOK,
      subscribedEventKeys: subscribedEventKeys ?? ['customer:created'],
    })
    const [delivery] = await publishRow(dataSource, organisationId)
    await setRow(dataSource, delivery!.deliveryId, { state, attempts: 1 })
    const [row] = await dataSource.query<[{ eventId: string }]>(
      'SELECT event_id AS "eventId" FROM delivery WHERE id = $1',
      [delivery!.deliveryId],
    )
    await dataSource.query('UPDATE webhook SET enabled = $2 WHERE id = $1', [webhook.id, enabled])
    const jobId = newId()
    await dataSource.transaction((manager) =>
      insertRetryJob(manager, {
        id: jobId,
        organisationId,
        webhookId: null,
        mode: 'failed',
        requestedBy: full.memberId,
      }),
    )
    const requestedBy = full.memberId
    const replayId = await createReplayRow(dataSource, { organisationId, webhookId: webhook.id, requestedBy })
    return {
      full,
      organisationId,
      webhookId: webhook.id,
      deliveryId: delivery!.deliveryId,
      eventId: row.eventId,
      jobId,
      replayId,
    }
  }
  type World = Awaited<ReturnType<typeof createWorld>>

  async function callerOf(name: CallerName, { organisationId, full }: World): Promise<TestMember | null> {
    const { dataSource } = suite.database
    if (name === 'none' || name in OPERATORS) return null
    if (name === 'full') return full
    if (name === 'foreign') return createMember(dataSource)
    if (name === 'revoked') {
      const revoked = await createMember(dataSource, { organisationId })
      await dataSource.query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [revoked.memberId])
      return revoked
    }
    return createMember(dataSource, { organisationId, permissions: [...CALLERS[name]] })
  }

  /** The caller's own push subscription: no caller can name another's. */
  async function ownSubscription({ organisationId, memberId }: TestMember): Promise<string> {
    const target = { id: newId(), memberId, endpoint: 'https://push.browser.com/own', p256dh: 'p', auth: 'a' }
    await upsertPushSubscription(suite.database.dataSource, { ...target, organisationId }, 20)
    return target.id
  }

  async function keyOf({ organisationId, memberId }: TestMember): Promise<string> {
    const [key] = await suite.database.dataSource.query<[{ id: string }]>(
      'SELECT id FROM api_key WHERE organisation_id = $1 AND member_id = $2',
      [organisationId, memberId],
    )
    return key.id
  }

  function pathOf(route: Route, world: World, ownId: string): string {
    const ids: Record<string, string> = {
      orgId: world.organisationId,
      id: /push-subscriptions|api-keys/.test(route.path) ? ownId : world.webhookId,
      memberId: world.full.memberId,
      deliveryId: world.deliveryId,
      eventId: world.eventId,
      jobId: route.path.includes('/replays/') ? world.replayId : world.jobId,
    }
    return route.path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name]!)
  }

  async function ask(route: Route, right: Right, world: World, name: CallerName): Promise<ApiResponse> {
    cells++
    const caller = await callerOf(name, world)
    const ownId =
      route.operationId === 'deletePushSubscription' && caller !== null
        ? await ownSubscription(caller)
        : await keyOf((route.operationId === 'revokeOwnApiKey' ? caller : null) ?? world.full)
    const operator = Object.entries(OPERATORS).find(([operatorName]) => operatorName === name)?.[1]
    return suite.api.call(route.method, `${pathOf(route, world, ownId)}${right.query ?? ''}`, {
      ...(operator === undefined ? {} : asOperator(operator)),
      ...(caller === null ? {} : { apiKey: caller.apiKey }),
      ...(right.body === undefined ? {} : { body: right.body() }),
    })
  }

  const ofOrganisations = routes.filter(({ access }) => access.kind !== 'operator')

  it('are declared for every route', () => {
    expect([...new Set(RIGHTS.map(({ operation }) => operation))]).to.have.members(
      routes.map(({ operationId }) => operationId),
    )
  })

  it('are declared for every success that is documented, but for those of what is new, exists or is a link', () => {
    const declared = RIGHTS.map(({ operation, status }) => `${operation} ${status}`)
    const documented = routes.flatMap(({ operationId, responses }) =>
      Object.keys(responses)
        .filter((status) => status.startsWith('2'))
        .map((status) => `${operationId} ${status}`),
    )
    // The tests of these resources have them.
    const others = [
      'openPortalLink 200',
      'createPushSubscription 200',
      'putOrganisation 201',
      'putMember 201',
    ]
    expect(documented.filter((success) => !declared.includes(success))).to.have.members(others)
  })

  for (const right of RIGHTS) {
    const route = routes.find(({ operationId }) => operationId === right.operation)
    if (route === undefined) throw new Error(`there is no operation ${right.operation}`)
    const { method, path } = route
    const what = right.what === undefined ? '' : `, ${right.what}`
    const names = Object.keys(CALLERS) as CallerName[]
    const allowed = names.filter((name) => right.to.includes(name))
    const refused = names.filter((name) => !right.to.includes(name))

    it(`${method} ${path}${what}: admit ${allowed.join(', ')}, and no others`, async () => {
      // Neither a refusal nor a GET changes anything, so these share a world; each other call has one of its own.
      const shared = await createWorld(right)
      for (const name of refused) {
        const { status, text, json } = await ask(route, right, shared, name)
        expect(status, `${name}: ${text}`).to.equal(refusalFor(name, route))
        if (status === 401) expect(json).to.include({ code: 'unauthenticated' })
        if (status === 403 && name in OPERATORS) expect(json).to.include({ code: 'missing_scope' })
        else if (status === 403) {
          const { missingPermissions } = json as { missingPermissions: string[] }
          expect(missingPermissions, name).not.to.be.empty
          expect(CALLERS[name], name).not.to.include.members(missingPermissions)
        }
      }
      for (const name of allowed) {
        const world = method === 'GET' ? shared : await createWorld(right)
        const { status, text, headers } = await ask(route, right, world, name)
        expect(status, `${name}: ${text}`).to.equal(right.status)
        expect(headers.has('ratelimit'), 'states its limit').to.equal(route.access.kind !== 'open')
      }
    })
  }

  for (const route of ofOrganisations.filter(({ path }) => /:(?!orgId)\w+/.test(path))) {
    it(`${route.operationId}: answers an id that is foreign, deleted or none exactly like an unknown one`, async () => {
      const right = RIGHTS.find(({ operation }) => operation === route.operationId)!
      const [own, foreign] = [await createWorld(right), await createWorld(right)]
      const at = async (world: World, subscriptionId: string) => {
        const { status, text } = await suite.api.call(
          route.method,
          pathOf(route, { ...world, organisationId: own.organisationId }, subscriptionId),
          { apiKey: own.full.apiKey, ...(right.body === undefined ? {} : { body: right.body() }) },
        )
        return { status, text }
      }
      const absent = {
        ...own,
        webhookId: newId(),
        deliveryId: newId(),
        eventId: newId(),
        jobId: newId(),
        replayId: newId(),
      }
      const unknown = await at(absent, newId())
      expect(unknown.status).to.equal(404)
      expect(await at(foreign, await ownSubscription(foreign.full))).to.deep.equal(unknown)
      // Half foreign: the own webhook with somebody else's delivery.
      if (route.path.includes(':deliveryId'))
        expect(await at({ ...own, deliveryId: foreign.deliveryId }, newId())).to.deep.equal(
          await at({ ...own, deliveryId: newId() }, newId()),
        )
      for (const none of NO_IDS) {
        const ids = { webhookId: none, deliveryId: none, eventId: none, jobId: none, replayId: none }
        expect((await at({ ...own, ...ids }, none)).status, none).to.equal(404)
      }
      // A replay is shown, and can be cancelled, also after its webhook.
      if (!route.path.includes('/webhooks/:id') || route.path.includes('/replays/')) return
      await suite.database.dataSource.query('UPDATE webhook SET deleted_at = now() WHERE id = $1', [
        own.webhookId,
      ])
      expect((await at(own, newId())).status, 'deleted').to.equal(404)
    })
  }
})
