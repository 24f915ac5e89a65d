import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { eventually } from '../eventually.ts'
import { createMember, createWebhookRow, type TestMember } from '../database/factories.ts'
import { type PosthornProcess, startPosthorn } from './posthorn.ts'
import { type Answer, createReceiver, type Receiver } from '../receivers/receiver.ts'
import { testServers } from '../runner/servers.ts'

/** One organisation, one webhook and its receiver on a database of its own, and Posthorn processes on top of it. */
export type Stage = {
  databaseUrl: string
  dataSource: DataSource
  member: TestMember
  /** The webhook of `receiver`. */
  webhookId: string
  receiver: Receiver
  /** How the receiver answers from now on. */
  answerWith(answer: Answer): void
  start(options?: Partial<Parameters<typeof startPosthorn>[0]>): Promise<PosthornProcess>
  /** Publishes one event and returns the id of its delivery, to `webhookId` where several get it. */
  publish(posthorn: PosthornProcess, wanted?: { event: string; webhookId: string }): Promise<string>
  /** Waits until the delivery's row has this state and number of attempts. */
  reaches(
    deliveryId: string,
    expected: { state: string; attempts: number },
    timeoutMs?: number,
  ): Promise<void>
  /** Waits until an attempt of the delivery has failed; further ones may have been made by then. */
  fails(deliveryId: string, timeoutMs?: number): Promise<void>
  /** Counts the deliveries of the database that are not completed. */
  uncompleted(): Promise<number>
  close(): Promise<void>
}

export async function createStage(
  servers: { database?: TestDatabase; temporalAddress?: string } = {},
): Promise<Stage> {
  const database = servers.database ?? (await createTestDatabase())
  const temporalAddress = servers.temporalAddress ?? testServers().temporalAddress
  const { dataSource } = database
  const taskQueue = `stage-${randomUUID()}`
  let answer: Answer = () => 200
  const receiver = await createReceiver({ answer: (...args) => answer(...args) })
  const member = await createMember(dataSource)
  const webhook = await createWebhookRow(dataSource, {
    organisationId: member.organisationId,
    url: receiver.url,
  })
  const processes: PosthornProcess[] = []
  return {
    databaseUrl: database.url,
    dataSource,
    member,
    webhookId: webhook.id,
    receiver,
    answerWith(next) {
      answer = next
    },
    async start(options = {}) {
      const started = await startPosthorn({
        databaseUrl: database.url,
        temporalAddress,
        taskQueue,
        ...options,
      })
      processes.push(started)
      return started
    },
    async publish(posthorn, wanted = { event: 'customer:created', webhookId: webhook.id }) {
      const answered = await posthorn.call('POST', `/api/orgs/${member.organisationId}/events`, {
        apiKey: member.apiKey,
        body: { event: wanted.event, data: { id: 'cus_1' } },
      })
      expect(answered.status, answered.text).to.equal(202)
      const { deliveries } = answered.json as { deliveries: { id: string; webhookId: string }[] }
      return deliveries.find(({ webhookId }) => webhookId === wanted.webhookId)!.id
    },
    reaches: (deliveryId, expected, timeoutMs) =>
      eventually(async () => {
        const found = await dataSource.query<object[]>('SELECT state, attempts FROM delivery WHERE id = $1', [
          deliveryId,
        ])
        expect(found[0]).to.deep.equal(expected)
      }, timeoutMs),
    fails: (deliveryId, timeoutMs) =>
      eventually(async () => {
        const failed = await dataSource.query<object[]>(
          `SELECT number FROM attempt WHERE delivery_id = $1 AND outcome = 'failed'`,
          [deliveryId],
        )
        expect(failed).to.have.length.above(0)
      }, timeoutMs),
    async uncompleted() {
      const [row] = await dataSource.query<[{ count: number }]>(
        `SELECT count(*)::int AS count FROM delivery WHERE state <> 'completed'`,
      )
      return row.count
    },
    async close() {
      await Promise.all(processes.map((started) => started.stop()))
      await receiver.close()
      await database.drop()
    },
  }
}

/** A stage for each test of the `describe` it is called in, closed whatever becomes of the test. */
export function useStage(): Stage {
  const stage = {} as Stage
  beforeEach(async () => {
    Object.assign(stage, await createStage())
  })
  afterEach(() => stage.close())
  return stage
}

/**
 * A stage for each test of the `describe` it is called in, on one database and with one process for all of them, since
 * a process takes longer to start than most tests.
 */
export function useServedStage(
  options: () => Parameters<Stage['start']>[0] = () => ({}),
): Stage & { posthorn: PosthornProcess } {
  const stage = {} as Stage & { posthorn: PosthornProcess }
  let shared: Stage
  before(async () => {
    shared = await createStage()
    stage.posthorn = await shared.start(options())
  })
  after(() => shared.close())
  beforeEach(async () => {
    const { dataSource, databaseUrl: url } = shared
    Object.assign(stage, await createStage({ database: { dataSource, url, drop: () => Promise.resolve() } }))
  })
  afterEach(() => stage.close())
  return stage
}
