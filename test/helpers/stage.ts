import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import type { TestDatabase } from './database.ts'
import { createTestDatabase } from './database.ts'
import { eventually } from './eventually.ts'
import { createMember, createWebhookRow, type TestMember } from './factories.ts'
import { startPosthorn, type PosthornProcess } from './posthorn.ts'
import { createReceiver, type Answer, type Receiver } from './receiver.ts'
import { testServers } from './servers.ts'

/** One organisation, one webhook and its receiver on a database of its own, and Posthorn processes on top of it. */
export type Stage = {
  dataSource: DataSource
  member: TestMember
  receiver: Receiver
  /** How the receiver answers from now on. */
  answerWith(answer: Answer): void
  start(options?: Partial<Parameters<typeof startPosthorn>[0]>): Promise<PosthornProcess>
  /** Publishes one event and returns the id of its delivery. */
  publish(posthorn: PosthornProcess): Promise<string>
  /** Waits until the delivery's row has this state and number of attempts. */
  reaches(
    deliveryId: string,
    expected: { state: string; attempts: number },
    timeoutMs?: number,
  ): Promise<void>
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
  await createWebhookRow(dataSource, { organisationId: member.organisationId, url: receiver.url })
  const processes: PosthornProcess[] = []
  return {
    dataSource,
    member,
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
    async publish(posthorn) {
      const answered = await posthorn.call('POST', `/api/orgs/${member.organisationId}/events`, {
        apiKey: member.apiKey,
        body: { event: 'customer:created', data: { id: 'cus_1' } },
      })
      expect(answered.status, answered.text).to.equal(202)
      return (answered.json as { deliveries: { id: string }[] }).deliveries[0]!.id
    },
    reaches: (deliveryId, expected, timeoutMs) =>
      eventually(async () => {
        const found = await dataSource.query<object[]>('SELECT state, attempts FROM delivery WHERE id = $1', [
          deliveryId,
        ])
        expect(found[0]).to.deep.equal(expected)
      }, timeoutMs),
    async close() {
      await Promise.all(processes.map((started) => started.stop()))
      await receiver.close()
      await database.drop()
    },
  }
}
