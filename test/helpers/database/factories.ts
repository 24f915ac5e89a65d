import { randomBytes } from 'node:crypto'
import { hashCredential } from '../../../src/credentials.ts'
import { createSecretBox, generateSigningSecret } from '../../../src/secret-box.ts'
import type { BacklogLimit } from '../../../src/deliveries/publish/backlog-limit.ts'
import type { DataSource } from 'typeorm'
import {
  commitEvents,
  type Commits,
  type CommittedDelivery,
  type NewEvent,
} from '../../../src/deliveries/protocol/commit-events.ts'
import { upsertApiKey, upsertMember, upsertOrganisation } from '../../../src/db/queries/organisations.ts'
import { insertWebhook, type WebhookRow } from '../../../src/db/queries/webhooks.ts'
import { newEvent } from '../../../src/deliveries/publish/envelope.ts'
import { newId } from '../../../src/ids.ts'
import { createPositions } from '../../../src/stream/positions.ts'
import { countReplayable, insertReplay } from '../../../src/db/queries/replays.ts'

/** Key ring of the tests, as configuration text and opened. */
export const TEST_KEY_RING = `test1:${'ab'.repeat(32)}`
const TEST_KEYS = [{ id: 'test1', key: Buffer.from('ab'.repeat(32), 'hex') }]
export const testSecretBox = createSecretBox(TEST_KEYS)
export const testPositions = createPositions(TEST_KEYS)

/** A pair of keys for push messages, made for the tests. */
export const TEST_VAPID_PRIVATE_KEY = '8jhvwpKhFlkqbXmKXfniEkYwtu8m2dKSReL1Qp586KM'
export const TEST_VAPID_PUBLIC_KEY =
  'BBRuvDJGAHT0rtEKw_9j0QH5idPVLpwexfZrgB8DYzo6ddw0quHRDGR_Tk5PpgPgL9yAAlOm2q8JmbdVL3qYrow'

/** For publishers: any number of deliveries may wait. */
export const noBacklogLimit: BacklogLimit = {
  isReached: () => Promise.resolve(false),
  committed: () => undefined,
}

/** Commits by a process that begins `room` first attempts of each webhook at once; any process takes up the others. */
export function testCommits({ room = 0, leaseMs = 60_000, sweepAfterMs = 60_000 } = {}): Commits {
  const reservation = {
    rooms: { inAll: 1_000, defaultRoom: room, webhooks: [] },
    sweepAfterMs,
    settle: () => undefined,
  }
  return { reserve: () => reservation, leaseMs }
}

export type TestMember = { organisationId: string; memberId: string; apiKey: string }

/** An organisation with one member and its key; full access unless permissions are given. */
export async function createMember(
  dataSource: DataSource,
  options: { organisationId?: string; permissions?: string[] } = {},
): Promise<TestMember> {
  const suffix = randomBytes(6).toString('hex')
  const { organisationId = `org_${suffix}`, permissions } = options
  const memberId = `mem_${suffix}`
  const apiKey = `phk_test_${randomBytes(16).toString('hex')}`
  await upsertOrganisation(dataSource, {
    id: organisationId,
    name: 'Camping Test',
    email: 'info@test.example',
    supportEmail: null,
    timeZone: 'Europe/Brussels',
  })
  await upsertMember(dataSource, organisationId, {
    id: memberId,
    name: 'Test Member',
    email: `${memberId}@test.example`,
    fullAccess: permissions === undefined,
    pushEnabled: true,
    permissions: permissions ?? [],
  })
  const key = { id: newId(), name: 'test', prefix: apiKey.slice(0, 8), hash: hashCredential(apiKey) }
  await upsertApiKey(dataSource, organisationId, memberId, key)
  return { organisationId, memberId, apiKey }
}

/** Gives the key of a member another value under the same name, as `posthorn seed` does; returns the value. */
export async function replaceKeyValue(
  dataSource: DataSource,
  { organisationId, memberId }: TestMember,
  apiKey = `phk_test_${randomBytes(16).toString('hex')}`,
): Promise<string> {
  const key = { id: newId(), name: 'test', prefix: apiKey.slice(0, 8), hash: hashCredential(apiKey) }
  await upsertApiKey(dataSource, organisationId, memberId, key)
  return apiKey
}

/** A webhook straight in the database, with its secret in clear. */
export async function createWebhookRow(
  dataSource: DataSource,
  options: { organisationId: string; url: string; subscribedEventKeys?: string[]; enabled?: boolean },
): Promise<WebhookRow & { signingSecret: string }> {
  const { organisationId, url, subscribedEventKeys = ['*'], enabled = true } = options
  const id = newId()
  const signingSecret = generateSigningSecret()
  const secret = testSecretBox.seal(id, signingSecret)
  const webhook = await insertWebhook(dataSource, {
    id,
    organisationId,
    url,
    description: '',
    subscribedEventKeys,
    enabled,
    secret,
  })
  return { ...webhook, signingSecret }
}

/** A new event with this key, or `customer:created`. */
export function testEvent(organisationId: string, event = 'customer:created'): NewEvent {
  const timestamp = Date.now()
  const dataText = '{"id":"cus_1"}'
  return newEvent(organisationId, {
    event,
    dataText,
    timestamp,
    traceId: 'trace-1',
    spanId: null,
    triggeredBy: null,
  })
}

/** An event straight in the database, with its deliveries: pending unless there is `room`. */
export async function publishRow(
  dataSource: DataSource,
  organisationId: string,
  options: { eventKey?: string; room?: number; leaseMs?: number; sweepAfterMs?: number } = {},
): Promise<CommittedDelivery[]> {
  const { eventKey = 'customer:created', ...commits } = options
  const { reserve, leaseMs } = testCommits(commits)
  return (
    await commitEvents(dataSource, [testEvent(organisationId, eventKey)], {
      ...reserve([], 1),
      leaseMs,
    })
  )[0]!
}

/** A replay of every event of the organisation, straight in the database; returns its id. */
export async function createReplayRow(
  dataSource: DataSource,
  of: { organisationId: string; webhookId: string; requestedBy: string },
): Promise<string> {
  const { requestedBy, ...webhook } = of
  const range = { since: new Date(0), until: new Date(), eventKeys: null, include: 'all' } as const
  const work = { ...webhook, range, keptDays: 30 }
  const id = newId()
  const count = await countReplayable(dataSource, work)
  await insertReplay(dataSource, { ...work, id, count, requestedBy })
  return id
}
