import { randomUUID } from 'node:crypto'
import {
  createMember,
  createWebhookRow,
  publishRow,
  type TestMember,
} from '../../helpers/database/factories.ts'
import { operatorKeysText } from '../../helpers/api/operator.ts'
import { createMailServer, type MailServer } from '../../helpers/notifications/mail-server.ts'
import { startWipeableTemporal, type WipeableTemporal } from '../../helpers/temporal/wipeable-temporal.ts'
import { createPlayDatabase, type PlayDatabase } from './database.ts'
import { createDice } from './dice.ts'
import { createEndpoints, type Endpoints } from './endpoints.ts'
import {
  ATTEMPT_TIMEOUT_MS,
  NOTIFY_AFTER_MS,
  ORGANISATIONS,
  type Plan,
  SHUTDOWN_GRACE_MS,
  VICTIM,
} from './plan.ts'
import { createPlayProcess, type PlayProcess } from './play-process.ts'
import { createFakeClock, type FakeClock } from '../rig/fake-clock.ts'
import type { Fault, FaultKind, FollowedStream, PlayedWebhook, Publication, UserAction } from './record.ts'

/** A webhook of the play, with what is needed to change it. */
export type WorldWebhook = PlayedWebhook & {
  endpoint: number
  urlVersion: number
  isDeleted: boolean
  /** Changes of one webhook come one after the other, so that what it was at any time is known. */
  changed: Promise<void>
}

/** What a play is played with, and the journal of what was done. */
export type PlayWorld = {
  database: PlayDatabase
  /** PostgreSQL's wall clock; null where it is not to be stepped, or cannot be. */
  databaseClock: FakeClock | null
  temporal: WipeableTemporal
  endpoints: Endpoints
  mail: MailServer
  /** One of each of `ORGANISATIONS`. */
  members: TestMember[]
  webhooks: WorldWebhook[]
  processes: PlayProcess[]
  publications: Publication[]
  actions: UserAction[]
  faults: Fault[]
  streams: FollowedStream[]
  close(): Promise<void>
}

/** Events that are too old to be kept, for retention to find. */
const OLD_EVENTS = 20

/** Starts servers, endpoints and processes as the plan says; `program`: the `posthorn` command, if not this release's. */
export async function createPlayWorld(plan: Plan, program?: string): Promise<PlayWorld> {
  const hasFault = (kind: FaultKind): boolean => plan.tracks.flat().some((fault) => fault.kind === kind)
  const databaseClock = hasFault('database_clock_step') ? createFakeClock(0) : null
  const [database, temporal, mail] = await Promise.all([
    createPlayDatabase(databaseClock?.env),
    startWipeableTemporal(),
    createMailServer(),
  ])
  const names = plan.processes.map(({ command }, index) => `${command} ${index + 1}`)
  const addressOf = (index: number): string => `127.0.0.${11 + index}`
  const endpoints = await createEndpoints(
    createDice(plan.seed ^ 0x5eed),
    (address) => names.find((_, index) => address.endsWith(addressOf(index))) ?? null,
  )
  const members: TestMember[] = []
  for (let count = 0; count < ORGANISATIONS.length; count++)
    members.push(await createMember(database.dataSource))
  const webhooks = await createWebhooks(plan, { database, endpoints, members })
  await createOldEvents(database, members[VICTIM]!)
  const taskQueue = `play-${randomUUID()}`
  const env = {
    FIRST_ATTEMPT: plan.firstAttempt,
    ATTEMPT_TIMEOUT_MS: String(ATTEMPT_TIMEOUT_MS),
    POSTHORN_NOTIFY_AFTER_SECONDS: String(NOTIFY_AFTER_MS / 1_000),
    SHUTDOWN_GRACE_MS: String(SHUTDOWN_GRACE_MS),
    DATABASE_POOL_SIZE: '10',
    RATE_LIMIT_MANAGEMENT: '0',
    WEBHOOKS_PER_ORGANISATION: '1000',
    POSTHORN_OPERATOR_KEYS: operatorKeysText(),
    SMTP_HOST: mail.host,
    SMTP_PORT: String(mail.port),
    SMTP_TLS: 'none',
  }
  const processes: PlayProcess[] = []
  for (const [index, { command, webhookConcurrency }] of plan.processes.entries())
    processes.push(
      await createPlayProcess({
        name: names[index]!,
        command,
        program,
        databaseUrl: database.url,
        temporalAddress: temporal.address,
        taskQueue,
        env: { ...env, WEBHOOK_CONCURRENCY: String(webhookConcurrency) },
        address: addressOf(index),
        receivers: [endpoints.port, mail.port],
        hasClock: hasFault('clock_step'),
      }),
    )
  await Promise.all(processes.map((played) => played.start()))
  return {
    database,
    databaseClock,
    temporal,
    endpoints,
    mail,
    members,
    webhooks,
    processes,
    publications: [],
    actions: [],
    faults: [],
    streams: [],
    async close() {
      await endpoints.close()
      await mail.close()
      await temporal.close()
      await database.close()
      databaseClock?.remove()
    },
  }
}

async function createWebhooks(
  plan: Plan,
  { database, endpoints, members }: Pick<PlayWorld, 'database' | 'endpoints' | 'members'>,
): Promise<WorldWebhook[]> {
  const webhooks: WorldWebhook[] = []
  for (const { name, organisation, subscribedEventKeys, phases } of plan.endpoints) {
    const { organisationId } = members[organisation]!
    const endpoint = endpoints.add(phases)
    const url = endpoints.urlOf(endpoint, 0)
    const row = await createWebhookRow(database.dataSource, { organisationId, url, subscribedEventKeys })
    endpoints.belongsTo(endpoint, row.id)
    webhooks.push({
      id: row.id,
      organisationId,
      name,
      signingSecret: row.signingSecret,
      subscribedEventKeys,
      isVictim: organisation === VICTIM,
      hangsAtEnd: phases.at(-1)!.behaviour === 'hangs',
      endpoint,
      urlVersion: 0,
      isDeleted: false,
      changed: Promise.resolve(),
    })
  }
  return webhooks
}

/** Publishes events and dates them back, with their completed deliveries. */
async function createOldEvents(database: PlayDatabase, { organisationId }: TestMember): Promise<void> {
  const { dataSource } = database
  for (let count = 0; count < OLD_EVENTS; count++) await publishRow(dataSource, organisationId)
  await dataSource.query(`UPDATE event SET created_at = now() - interval '200 days'`)
  await dataSource.query(
    `UPDATE delivery SET state = 'completed', attempts = 1, sweep_at = NULL, workflow_started_at = created_at,
            created_at = now() - interval '200 days', completed_at = now() - interval '200 days'`,
  )
}
