import { createAttempt } from '../../../src/deliveries/attempt/make-attempt.ts'
import type { AttemptOutcome } from '../../../src/domain/attempt-outcome.ts'
import type { AttemptRequest } from '../../../src/domain/attempt-outcome.ts'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import type { WebhookRow } from '../../../src/db/queries/webhooks.ts'
import type { TestDatabase } from '../database/database.ts'
import { createMember, createWebhookRow, publishRow } from '../database/factories.ts'
import { createReceiver, type Answer, type Receiver } from '../receivers/receiver.ts'
import { attemptDependencies, attemptRequest, NO_SIGNALS } from './attempts.ts'
import { useRows, type DeliveryColumns } from './use-rows.ts'

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
    delivery: CommittedDelivery
  }>
  /** Makes an attempt, the first one at once but for `changes`. */
  attempt: (delivery: CommittedDelivery, changes?: Partial<AttemptRequest>) => Promise<AttemptOutcome>
  row: (deliveryId: string) => Promise<DeliveryColumns>
  attemptsOf: (deliveryId: string) => Promise<Record<string, unknown>[]>
}

/** Creates a database and attempt dependencies for the `describe` it is called in, and a receiver for each test. */
export function useAttempts(attemptTimeoutMs?: number): AttemptSuite {
  const rows = useRows()
  let answer: Answer
  const suite = {
    database: rows.database,
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
    attempt: (delivery, changes) =>
      createAttempt(suite.dependencies)(attemptRequest(delivery, changes), NO_SIGNALS),
    row: (deliveryId) => rows.row({ deliveryId }),
    attemptsOf: (deliveryId) => rows.attemptsOf({ deliveryId }),
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
