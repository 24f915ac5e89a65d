import type { DataSource } from 'typeorm'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { useDatabase } from '../database/database.ts'
import { createMember, createWebhookRow, publishRow, type TestMember } from '../database/factories.ts'
import { createReceiver, type Answer, type Receiver } from '../receivers/receiver.ts'
import { useTemporal, type TestTemporal } from './time-skipping.ts'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js'
import type { TestWorkflowEnvironment } from '@temporalio/testing'

/** What the tests that save histories share; `answer` is how the endpoint answers, and may be changed. */
export type HistoryStage = {
  readonly temporal: TestTemporal
  readonly dataSource: DataSource
  readonly receiver: Receiver
  answer: Answer
  /** Creates an organisation with a webhook for the receiver. */
  createWebhook(): Promise<TestMember & { webhookId: string }>
  /** Creates the same, and publishes one event. */
  publish(): Promise<CommittedDelivery>
  save(name: string, workflowId: string): Promise<void>
}

/** Starts a database, a time-skipping Temporal server and a receiver for the `describe` it is called in. */
export function useHistoryStage(): HistoryStage {
  const database = useDatabase()
  const temporal = useTemporal()
  let receiver: Receiver
  const stage: HistoryStage = {
    temporal,
    get dataSource() {
      return database.dataSource
    },
    get receiver() {
      return receiver
    },
    answer: () => 200,
    async createWebhook() {
      const member = await createMember(database.dataSource)
      const { organisationId } = member
      const { id } = await createWebhookRow(database.dataSource, { organisationId, url: receiver.url })
      return { ...member, webhookId: id }
    },
    async publish() {
      const { organisationId } = await stage.createWebhook()
      const [delivery] = await publishRow(database.dataSource, organisationId)
      return delivery!
    },
    save: (name, workflowId) => saveHistory(temporal.environment, name, workflowId),
  }
  before(async () => {
    receiver = await createReceiver({ answer: (...args) => stage.answer(...args) })
  })
  after(() => receiver.close())
  return stage
}

const folder = fileURLToPath(new URL('../../workflows/histories', import.meta.url))

/** Keeps a workflow's history for `test/workflows/replay.test.ts`, unless there is one of that name. */
async function saveHistory(
  temporal: TestWorkflowEnvironment,
  name: string,
  workflowId: string,
): Promise<void> {
  mkdirSync(folder, { recursive: true })
  // What a release made stays what it is: rename the old file to have a new one next to it.
  if (existsSync(`${folder}${name}.json`)) return
  const history = await temporal.client.workflow.getHandle(workflowId).fetchHistory()
  // The identity of the process is irrelevant.
  const text = historyToJSON(history).replaceAll(/"identity": *"[^"]*"/g, '"identity": "worker"')
  writeFileSync(`${folder}${name}.json`, `${text}\n`)
}
