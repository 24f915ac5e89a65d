import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import { deliveryWorkflowId } from '../../src/temporal/delivery-workflows.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { eventually } from '../helpers/eventually.ts'
import { percentile } from '../helpers/percentile.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createWebhookOwner, type WebhookOwner } from '../helpers/processes/webhook-owner.ts'
import type { History } from '../helpers/temporal/history.ts'
import { testServers } from '../helpers/runner/servers.ts'

const DELIVERIES = 50

/** After the request a signal may be repeated soon; this minute begins when the sweeper has examined the rows twice. */
const BEFORE_MS = 45_000
const MINUTE_MS = 60_000

/** Signals of one workflow in this minute; at a steady interval of 15 s there were four. */
const MAX_SIGNALS = 2

/** Events of most histories in this minute: a signal, a timer and the attempt that it requests are about twelve. */
const MAX_EVENTS = 30

describe('forced retries at an endpoint that hangs', () => {
  let owner: WebhookOwner
  afterEach(() => owner.close())
  const stage = useStage()
  let temporal: Client

  before(async () => {
    const { temporalAddress } = testServers()
    temporal = new Client({ connection: await Connection.connect({ address: temporalAddress }) })
  })
  after(() => temporal.connection.close())

  const historyOf = (deliveryId: string): Promise<History> =>
    temporal.workflow.getHandle(deliveryWorkflowId(deliveryId)).fetchHistory()
  const historiesOf = (deliveryIds: readonly string[]) => Promise.all(deliveryIds.map(historyOf))
  const eventsOf = ({ events }: History): number => events?.length ?? 0
  const signalsOf = ({ events }: History): number =>
    (events ?? []).filter((event) => event.workflowExecutionSignaledEventAttributes).length

  it('are signalled at growing intervals while they are deferred, so that their histories stay short', async () => {
    const posthorn = await stage.start()
    owner = await createWebhookOwner(stage.dataSource, posthorn, () => null)
    const { organisationId, webhookId } = owner
    const backlog = { organisationId, webhookId, state: 'waiting', count: DELIVERIES } as const
    const deliveryIds = await writeBacklog(stage.dataSource, backlog)
    await owner.retryAll('force')
    await eventually(() => historiesOf(deliveryIds))
    await delay(BEFORE_MS)
    const before = await historiesOf(deliveryIds)
    await delay(MINUTE_MS)
    const after = await historiesOf(deliveryIds)
    const grown = (count: (history: History) => number): number[] =>
      after.map((history, index) => count(history) - count(before[index]!))
    expect(Math.max(...grown(signalsOf))).to.be.at.most(MAX_SIGNALS)
    expect(percentile(grown(eventsOf), 0.5)).to.be.at.most(MAX_EVENTS)
    await posthorn.kill()
  })
})
