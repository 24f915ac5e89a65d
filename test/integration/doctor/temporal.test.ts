import { randomUUID } from 'node:crypto'
import { NativeConnection } from '@temporalio/worker'
import { expect } from 'chai'
import { freePort } from '../../../src/free-port.ts'
import { createWorkers } from '../../../src/temporal/worker.ts'
import { attemptDependencies, testActivities } from '../../helpers/deliveries/attempts.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { createSilentHost, examine, settingsOf, type Examined } from '../../helpers/doctor/doctored.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testServers } from '../../helpers/runner/servers.ts'
import { quietRuntime } from '../../helpers/temporal/runtime.ts'
import { createTemporalGate } from '../../helpers/temporal/temporal-gate.ts'

/** Each area has two checks in a row at most, of five seconds each, and closing takes three; a machine may be busy. */
const ENDS_WITHIN_MS = 60_000

/** NAMESPACE_NOT_FOUND is cached by Temporal for a while, and so are new namespaces. */
const NAMESPACE_TIMEOUT_MS = 30_000
const DAY_SECONDS = 86_400

/** `INDEXED_VALUE_TYPE_TEXT` of Temporal's API. */
const TEXT = 1

describe('posthorn doctor examines Temporal', () => {
  const database = useDatabase()
  let connection: NativeConnection

  before(async () => {
    quietRuntime()
    connection = await NativeConnection.connect({ address: testServers().temporalAddress })
  })
  after(() => connection.close())

  it('names one that cannot be reached, and what was skipped for it', async () => {
    const address = `127.0.0.1:${await freePort()}`
    const { status, problems, skipped, find } = await examine(
      settingsOf(database.url, { TEMPORAL_ADDRESS: address }),
    )
    expect([status, problems]).to.deep.equal(['error', ['error temporal.unreachable']])
    expect(skipped).to.deep.equal([
      'temporal.namespace',
      'temporal.search_attributes',
      'temporal.rights',
      'temporal.workers',
      'deliveries.workflows',
      'retry_jobs.workflows',
      'erasures.workflows',
    ])
    expect(find('temporal.unreachable').seen).to.include(address)
  })

  it('ends in time where every server accepts connections and never answers', async () => {
    const silent = await createSilentHost()
    const address = `127.0.0.1:${silent.port}`
    const beganAtMs = performance.now()
    const { problems } = await examine(
      settingsOf(`postgres://u:p@${address}/x`, {
        TEMPORAL_ADDRESS: address,
        SMTP_HOST: '127.0.0.1',
        SMTP_PORT: String(silent.port),
      }),
    ).finally(() => silent.close())
    expect(problems).to.deep.equal([
      'error database.unreachable',
      'error temporal.unreachable',
      'error mail.unreachable',
    ])
    expect(performance.now() - beganAtMs).to.be.below(ENDS_WITHIN_MS)
  })

  it('names a namespace that is missing', async () => {
    const { problems, find } = await examine(settingsOf(database.url, { TEMPORAL_NAMESPACE: 'not-there' }))
    expect(problems).to.deep.equal(['error temporal.namespace_missing'])
    expect(find('temporal.namespace_missing').seen).to.include('not-there')
  })

  it('names search attributes that are missing, or have another type', async () => {
    const namespace = `doctor-${randomUUID()}`
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: DAY_SECONDS as never },
    })
    await eventually(async () => {
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: Object.fromEntries([['WebhookId', TEXT]]),
      })
    }, NAMESPACE_TIMEOUT_MS)
    await eventually(async () => {
      const { problems, find } = await examine(settingsOf(database.url, { TEMPORAL_NAMESPACE: namespace }))
      expect(problems).to.deep.equal([
        'error temporal.search_attributes_missing',
        'error temporal.search_attributes_mistyped',
      ])
      expect(find('temporal.search_attributes_missing').seen).to.equal(
        'missing: OrganisationId, EventKey, DeliveryState',
      )
      expect(find('temporal.search_attributes_mistyped').seen).to.include('WebhookId')
    }, NAMESPACE_TIMEOUT_MS)
  })

  it('names the task queues that no worker polls, and the builds of workers that do', async () => {
    const env = settingsOf(database.url)
    const taskQueue = env['TEMPORAL_TASK_QUEUE']!
    const alone = await examine(env)
    expect(alone.find('temporal.worker_missing')).to.deep.include({
      level: 'error',
      seen: `no worker polls for ${taskQueue} (workflow), ${taskQueue} (activity), ${taskQueue}-retry (activity), ${taskQueue}-slow (activity)`,
    })
    expect(alone.find('temporal.rights').level).to.equal('ok')

    const dependencies = attemptDependencies(database.dataSource)
    const settings = {
      namespace: 'default',
      taskQueue,
      shutdownGraceMs: 1_000,
      version: null,
    }
    const workers = await createWorkers(connection, settings, testActivities(dependencies))
    const ended = workers.run()
    try {
      await eventually(async () => {
        const { find } = await examine(env)
        expect(find('temporal.workers').seen)
          .to.match(/^workers that send heartbeats for /)
          .and.include(`${taskQueue} (workflow): 1`)
        expect(find('temporal.builds').seen).to.match(/\(workflow\): \S+@\S+/)
        expect(find('temporal.backlog').level).to.equal('ok')
      })
    } finally {
      workers.shutdown()
      await ended
      await dependencies.httpClient.close()
    }
  })

  async function examineRefusing(...calls: string[]): Promise<Examined> {
    const gate = await createTemporalGate(calls)
    return examine(settingsOf(database.url, { TEMPORAL_ADDRESS: gate.address })).finally(() => gate.close())
  }

  it('finds no problem where every call is permitted', async () => {
    const { problems, find } = await examineRefusing()
    expect(problems).to.deep.equal([])
    expect(find('temporal.rights').level).to.equal('ok')
  })

  it('names an identity that may call nothing', async () => {
    const { problems, skipped } = await examineRefusing('GetSystemInfo')
    expect(problems).to.deep.equal(['error temporal.access_refused'])
    expect(skipped).to.include('temporal.namespace')
  })

  it('names an identity that may only read', async () => {
    const { problems } = await examineRefusing('SignalWorkflowExecution')
    expect(problems).to.deep.equal(['error temporal.rights_missing'])
  })

  it('warns of one that may not read the namespace or its search attributes, and goes on', async () => {
    const { problems, find } = await examineRefusing('DescribeNamespace', 'ListSearchAttributes')
    expect(problems).to.deep.equal([
      'warning temporal.namespace_unreadable',
      'warning temporal.search_attributes_unreadable',
    ])
    expect(find('temporal.rights').level).to.equal('ok')
  })
})
