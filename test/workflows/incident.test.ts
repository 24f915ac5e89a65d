import { expect } from 'chai'
import { requestRetry } from '../helpers/deliveries/request-retry.ts'
import type { CommittedDelivery } from '../../src/deliveries/protocol/commit-events.ts'
import {
  deliveryWorkflowId,
  createIncidentWorkflows,
  incidentWorkflowId,
} from '../../src/temporal/workflows.ts'
import { type TestDependencies, unbounded } from '../helpers/deliveries/attempts.ts'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import { eventually } from '../helpers/eventually.ts'
import { createMember, createWebhookRow, publishRow } from '../helpers/database/factories.ts'
import { readableHistory } from '../helpers/temporal/history.ts'
import { terminateAtRest, useTemporal } from '../helpers/temporal/time-skipping.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** A mail as the seam saw it, with the time of Temporal since the test began. */
type Sent = { kind: number; to: string; atMs: number }

type Incident = { id: string; closed: boolean; exhausted: boolean }

describe('incident, on a time-skipping server', () => {
  const suite = useAttempts()
  const { database } = suite
  const temporal = useTemporal()
  let failing: boolean
  let sent: Sent[]
  let beganAt: number

  beforeEach(() => {
    failing = true
    sent = []
    suite.answerWith(() => (failing ? 503 : 200))
  })

  const elapsedMs = async (): Promise<number> => (await temporal.environment.currentTimeMs()) - beganAt

  /** One webhook of an organisation with two recipients, and what a test does with it. */
  async function onStage(
    act: (stage: {
      publish: () => Promise<CommittedDelivery>
      retry: (delivery: CommittedDelivery) => Promise<void>
      until: (ms: number) => Promise<void>
      incidents: () => Promise<Incident[]>
      end: (delivery: CommittedDelivery) => Promise<unknown>
      webhookId: string
    }) => Promise<void>,
  ): Promise<void> {
    const { dataSource } = database
    const { organisationId } = await createMember(dataSource)
    await createMember(dataSource, { organisationId, permissions: ['organizationSettings:update'] })
    await createMember(dataSource, { organisationId, permissions: ['webhook:manage'] })
    const webhook = await createWebhookRow(dataSource, { organisationId, url: suite.receiver.url })
    const client = () => temporal.environment.client
    let taskQueue = ''
    const dependencies: TestDependencies = {
      ...suite.dependencies,
      incidentWorkflows: {
        signal: (label) =>
          createIncidentWorkflows({ client, taskQueue, notifyAfterMs: 5 * MINUTE }).signal(label),
      },
      channels: {
        push: null,
        email: {
          limiter: unbounded,
          send: async (notice, { address }) => {
            sent.push({ kind: notice.kind, to: address, atMs: await elapsedMs() })
            return { state: 'sent' }
          },
        },
      },
    }
    await temporal.withWorkflows(dependencies, async (workflows, queue) => {
      taskQueue = queue
      const publish = async (): Promise<CommittedDelivery> => {
        const [delivery] = await publishRow(dataSource, organisationId)
        await workflows.start(delivery!, { number: 1, dueAtMs: null })
        return delivery!
      }
      const stage = {
        webhookId: webhook.id,
        publish,
        async retry({ deliveryId }: CommittedDelivery) {
          const asked = await requestRetry(dataSource, organisationId, webhook.id, deliveryId)
          await workflows.wake({ organisationId, webhookId: webhook.id, ...asked! }, asked!.attempts)
        },
        until: async (ms: number) => temporal.environment.sleep(Math.max(1, ms - (await elapsedMs()))),
        incidents: () =>
          dataSource.query<Incident[]>(
            `SELECT id, closed_at IS NOT NULL AS closed, exhausted_at IS NOT NULL AS exhausted
               FROM incident WHERE webhook_id = $1 ORDER BY opened_at`,
            [webhook.id],
          ),
        end: ({ deliveryId }: CommittedDelivery) => temporal.resultOf(deliveryId),
      }
      beganAt = await temporal.environment.currentTimeMs()
      await act(stage).finally(() => endWhatRuns(webhook.id))
    })
  }

  /** What still runs would take the time of the tests after it. */
  async function endWhatRuns(webhookId: string): Promise<void> {
    const ids = await database.dataSource.query<{ delivery: string | null; incident: string | null }[]>(
      `SELECT d.id AS delivery, NULL AS incident FROM delivery d WHERE webhook_id = $1
       UNION ALL SELECT NULL, id FROM incident WHERE webhook_id = $1`,
      [webhookId],
    )
    for (const { delivery, incident } of ids) {
      const workflowId =
        delivery === null ? incidentWorkflowId(webhookId, incident!) : deliveryWorkflowId(delivery)
      await terminateAtRest(temporal.environment.client.workflow.getHandle(workflowId))
    }
  }

  const kinds = (): number[] => sent.map(({ kind }) => kind)

  it('sends no notification when the endpoint recovers after 4 minutes and 59 seconds', () =>
    onStage(async ({ publish, retry, until, incidents }) => {
      const delivery = await publish()
      await until(299 * SECOND)
      failing = false
      await retry(delivery)
      await until(20 * MINUTE)
      expect(sent).to.deep.equal([])
      expect((await incidents()).map(({ closed }) => closed)).to.deep.equal([true])
    }))

  it('sends no notification while one delivery waits for its sixth attempt and others succeed', () =>
    onStage(async ({ publish, until, incidents }) => {
      await publish()
      await until(MINUTE)
      failing = false
      await publish()
      await until(310 * SECOND)
      expect(sent).to.deep.equal([])
      expect((await incidents()).map(({ closed }) => closed)).to.deep.equal([false])
      await until(10 * MINUTE)
      expect((await incidents()).map(({ closed }) => closed)).to.deep.equal([true])
      await until(20 * MINUTE)
      expect(sent).to.deep.equal([])
    }))

  it('sends notification 1 after five minutes of failure, once to each recipient', () =>
    onStage(async ({ publish, until }) => {
      await publish()
      await until(299 * SECOND)
      expect(sent).to.deep.equal([])
      await until(310 * SECOND)
      // The organisation, its member with full access, and the one that may change settings.
      expect(kinds()).to.deep.equal([1, 1, 1])
      expect(new Set(sent.map(({ to }) => to))).to.have.property('size', 3)
      expect(Math.min(...sent.map(({ atMs }) => atMs))).to.be.within(300 * SECOND, 310 * SECOND)
      await until(HOUR)
      expect(sent).to.have.length(3)
    }))

  // The rows' clock does not advance while Temporal's is skipped: the streak that begins here is one that wakes the
  // workflow. With a clock of both: test/integration/incidents/incident-model.test.ts.
  it('restarts the five minutes after a success', () =>
    onStage(async ({ publish, until }) => {
      await publish()
      await until(30 * SECOND)
      failing = false
      await publish()
      // Past the first evaluation, which finds that the latest attempt succeeded and rests.
      await until(305 * SECOND)
      failing = true
      // Its sixth attempt, at 315 s, fails: five minutes from there.
      await until(610 * SECOND)
      expect(sent).to.deep.equal([])
      await until(625 * SECOND)
      expect(kinds()).to.deep.equal([1, 1, 1])
    }))

  it('sends notification 2 at the first permanently failed delivery, and no third', () =>
    onStage(async ({ publish, until, end, incidents }) => {
      const first = await publish()
      await publish()
      await end(first)
      await until((await elapsedMs()) + HOUR)
      expect(kinds()).to.deep.equal([1, 1, 1, 2, 2, 2])
      const second = sent.filter(({ kind }) => kind === 2)
      expect(Math.min(...second.map(({ atMs }) => atMs))).to.be.within(32 * HOUR, 33 * HOUR)
      expect((await incidents()).map(({ exhausted, closed }) => [exhausted, closed])).to.deep.equal([
        [true, false],
      ])
    }))

  it('starts again, with its own notifications, when deliveries fail after the end', () =>
    onStage(async ({ publish, retry, until, end, incidents }) => {
      const first = await publish()
      await end(first)
      // A closed incident sends no notifications.
      await eventually(() => expect(sent).to.have.length(6))
      failing = false
      await retry(first)
      await end(first)
      expect((await incidents()).map(({ closed }) => closed)).to.deep.equal([true])
      failing = true
      const second = await publish()
      await end(second)
      await until((await elapsedMs()) + HOUR)
      expect(kinds()).to.deep.equal([1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2])
      expect((await incidents()).map(({ closed }) => closed)).to.deep.equal([true, false])
    }))

  it('sends no notification of a webhook that was disabled meanwhile', () =>
    onStage(async ({ publish, until, webhookId }) => {
      await publish()
      await until(MINUTE)
      await database.dataSource.query('UPDATE webhook SET enabled = false WHERE id = $1', [webhookId])
      await until(40 * HOUR)
      expect(sent).to.deep.equal([])
    }))

  it('writes no payload, path, address or receiver text into its history', () =>
    onStage(async ({ publish, until, incidents, webhookId }) => {
      await publish()
      await until(10 * MINUTE)
      const [incident] = await incidents()
      const workflowId = incidentWorkflowId(webhookId, incident!.id)
      const handle = temporal.environment.client.workflow.getHandle(workflowId)
      const history = await handle.fetchHistory()
      const text = readableHistory(history)
      expect(text).to.include(incident!.id)
      for (const canary of ['cus_1', 'trace-1', '/hook', 'answer 0', 'test.example'])
        expect(text, canary).not.to.include(canary)
    }))
})
