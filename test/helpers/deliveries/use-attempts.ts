import type { DeliveryToStart } from '../../../src/db/queries/events.ts'
import type { WebhookRow } from '../../../src/db/queries/webhooks.ts'
import type { TestDatabase } from '../database/database.ts'
import { createMember, createWebhookRow, publishRow } from '../database/factories.ts'
import { useDatabase } from '../database/use-database.ts'
import { createReceiver, type Answer, type Receiver } from '../receivers/receiver.ts'
import { attemptDependencies } from './attempts.ts'

/** What the tests of one `describe` about attempts share; filled before the first of them. */
export type AttemptSuite = {
  readonly database: TestDatabase
  /** What real attempts need. */
  readonly dependencies: ReturnType<typeof attemptDependencies>
  /** New for each test. */
  readonly receiver: Receiver
  /** Sets how the receiver answers from now on. Each test begins with one that answers 200. */
  answerWith: (answer: Answer) => void
  /** Publishes one event in a new organisation, whose only webhook leads to the receiver. `path` follows its URL. */
  publish: (path?: string) => Promise<{
    organisationId: string
    webhook: WebhookRow & { signingSecret: string }
    delivery: DeliveryToStart
  }>
}

/** Creates a database and attempt dependencies for the `describe` it is called in, and a receiver for each test. */
export function useAttempts(attemptTimeoutMs?: number): AttemptSuite {
  let answer: Answer
  const suite = {
    database: useDatabase(),
    answerWith(next) {
      answer = next
    },
    async publish(path = '') {
      const { dataSource } = suite.database
      const { organisationId } = await createMember(dataSource)
      const url = `${suite.receiver.url}${path}`
      const webhook = await createWebhookRow(dataSource, { organisationId, url })
      const [delivery] = await publishRow(dataSource, organisationId)
      return { organisationId, webhook, delivery: delivery! }
    },
  } as AttemptSuite
  before(() => {
    Object.assign(suite, { dependencies: attemptDependencies(suite.database.dataSource, attemptTimeoutMs) })
  })
  after(() => suite.dependencies.httpClient.close())
  beforeEach(async () => {
    answer = () => 200
    Object.assign(suite, { receiver: await createReceiver({ answer: (...args) => answer(...args) }) })
  })
  afterEach(() => suite.receiver.close())
  return suite
}
