import { randomUUID } from 'node:crypto'
import type { DataSource } from 'typeorm'
import { createTestDatabase } from '../../helpers/database/database.ts'
import { createMember, createWebhookRow, type TestMember } from '../../helpers/database/factories.ts'
import { createMailServer, type MailServer } from '../../helpers/notifications/mail-server.ts'
import { startWipeableTemporal, type WipeableTemporal } from '../../helpers/temporal/wipeable-temporal.ts'
import { createDice } from './dice.ts'
import { createEndpoints, type Endpoints } from './endpoints.ts'
import type { Plan } from './plan.ts'
import { createPlayProcess, type PlayProcess } from './play-process.ts'
import { createRecordingFault, type RecordingFault } from './recording-fault.ts'
import type { Fault, PlayedWebhook, Publication, UserAction } from './record.ts'

/** What a play is played with, and the journal of what was done. */
export type PlayWorld = {
  /** Past all proxies: no fault reaches it. */
  dataSource: DataSource
  temporal: WipeableTemporal
  recordingFault: RecordingFault
  endpoints: Endpoints
  mail: MailServer
  member: TestMember
  webhooks: PlayedWebhook[]
  processes: PlayProcess[]
  publications: Publication[]
  actions: UserAction[]
  faults: Fault[]
  close(): Promise<void>
}

/** Short, so that leases and hanging POSTs end within a play of a minute. */
export const ATTEMPT_TIMEOUT_MS = 5_000
export const NOTIFY_AFTER_MS = 8_000

/** Starts servers, endpoints and processes as the plan says. */
export async function createPlayWorld(plan: Plan): Promise<PlayWorld> {
  const [database, temporal, mail] = await Promise.all([
    createTestDatabase(),
    startWipeableTemporal(),
    createMailServer(),
  ])
  const { dataSource } = database
  const endpoints = await createEndpoints(plan.endpoints, createDice(plan.seed ^ 0x5eed))
  const member = await createMember(dataSource)
  const webhooks: PlayedWebhook[] = []
  for (const [index, { name, subscribedEventKeys }] of plan.endpoints.entries()) {
    const { organisationId } = member
    const url = endpoints.urlOf(index)
    const { id, signingSecret } = await createWebhookRow(dataSource, {
      organisationId,
      url,
      subscribedEventKeys,
    })
    endpoints.belongsTo(index, id)
    webhooks.push({ id, name, signingSecret, subscribedEventKeys })
  }
  const recordingFault = await createRecordingFault(dataSource)
  const taskQueue = `play-${randomUUID()}`
  const env = {
    FIRST_ATTEMPT: plan.firstAttempt,
    ATTEMPT_TIMEOUT_MS: String(ATTEMPT_TIMEOUT_MS),
    POSTHORN_NOTIFY_AFTER_SECONDS: String(NOTIFY_AFTER_MS / 1_000),
    SHUTDOWN_GRACE_MS: '8000',
    DATABASE_POOL_SIZE: '10',
    SMTP_HOST: mail.host,
    SMTP_PORT: String(mail.port),
    SMTP_TLS: 'none',
  }
  const processes: PlayProcess[] = []
  for (const [index, command] of plan.commands.entries()) {
    const name = `${command} ${index + 1}`
    const { url: databaseUrl } = database
    processes.push(
      await createPlayProcess({
        name,
        command,
        databaseUrl,
        temporalAddress: temporal.address,
        taskQueue,
        env,
        hasClock: plan.tracks.flat().some(({ kind }) => kind === 'clock_step'),
      }),
    )
  }
  await Promise.all(processes.map((played) => played.start()))
  return {
    dataSource,
    temporal,
    recordingFault,
    endpoints,
    mail,
    member,
    webhooks,
    processes,
    publications: [],
    actions: [],
    faults: [],
    async close() {
      await endpoints.close()
      await mail.close()
      await temporal.close()
      await database.drop()
    },
  }
}
