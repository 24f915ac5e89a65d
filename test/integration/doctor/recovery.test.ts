import { fileURLToPath } from 'node:url'
import { ApplicationFailure } from '@temporalio/common'
import { NativeConnection, Worker } from '@temporalio/worker'
import { expect } from 'chai'
import { openIncident } from '../../../src/db/queries/incidents.ts'
import { insertErasure } from '../../../src/db/queries/erasures.ts'
import { newId } from '../../../src/ids.ts'
import { erasureWorkflowId, retryWorkflowId } from '../../../src/temporal/workflows.ts'
import { countActivityFailures } from '../../../src/temporal/workflow-progress.ts'
import { createMember, createWebhookRow } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { writeBacklog } from '../../helpers/deliveries/backlog.ts'
import { examine, settingsOf } from '../../helpers/doctor/doctored.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testServers, useTemporalClient } from '../../helpers/runner/servers.ts'
import { quietRuntime } from '../../helpers/temporal/runtime.ts'

const WORKFLOWS = fileURLToPath(new URL('../../../workflows/index.ts', import.meta.url))

describe('posthorn doctor examines incidents, retry jobs and erasures', () => {
  const database = useDatabase()
  const client = useTemporalClient()
  let organisationId: string
  let webhookId: string

  before(quietRuntime)
  beforeEach(async () => {
    await database.dataSource.query('TRUNCATE organisation, webhook, event, delivery CASCADE')
    organisationId = (await createMember(database.dataSource)).organisationId
    const webhook = { organisationId, url: 'https://receiver.example.com/' }
    webhookId = (await createWebhookRow(database.dataSource, webhook)).id
    await run(`UPDATE webhook SET updated_at = now() - interval '1 hour'`)
  })

  const run = (text: string, ...parameters: unknown[]) => database.dataSource.query<unknown>(text, parameters)
  const problemsNow = async (): Promise<string[]> => (await examine(settingsOf(database.url))).problems

  /** Starts a workflow that no worker runs; returns how to end it. */
  async function startWorkflow(workflowId: string): Promise<() => Promise<unknown>> {
    const taskQueue = settingsOf(database.url)['TEMPORAL_TASK_QUEUE']!
    const handle = await client.workflow.start('anything', { workflowId, taskQueue })
    return () => handle.terminate()
  }

  it('finds no problem where there are none', async () => {
    const { problems, find } = await examine(settingsOf(database.url))
    expect(problems).to.deep.equal([])
    for (const name of ['incidents', 'retry_jobs', 'erasures'])
      expect(find(`${name}.progress`).level, name).to.equal('ok')
    expect(find('retry_jobs.workflows').seen).to.equal('none had to be examined')
  })

  describe('an incident', () => {
    const id = newId()

    beforeEach(async () => {
      await openIncident(database.dataSource, { id, organisationId, webhookId })
    })
    const notify = (fields: string) =>
      run(
        `INSERT INTO notification (id, incident_id, kind, channel, recipient, state, claimed_at, created_at)
         VALUES (uuidv7(), $1, 1, 'email', 'info@test.example', ${fields})`,
        id,
      )

    it('is no problem while its workflow has time to evaluate it, or needs none', async () => {
      for (const sweepAt of [`now() - interval '4 minutes'`, `now() + interval '5 minutes'`, 'NULL']) {
        await run(`UPDATE incident SET sweep_at = ${sweepAt}`)
        expect(await problemsNow(), sweepAt).to.deep.equal([])
      }
      await notify(`'sending', now() - interval '30 minutes', now()`)
      expect(await problemsNow()).to.deep.equal([])
    })

    it('is named when no workflow has evaluated it', async () => {
      await run(`UPDATE incident SET sweep_at = now() - interval '6 minutes'`)
      const { problems, find } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal(['error incidents.overdue'])
      expect(find('incidents.overdue').seen).to.match(
        new RegExp(`^1 incident\\(s\\), the oldest since 20\\d\\d-.*, such as ${id}$`),
      )
    })

    for (const [what, fields] of [
      ['whose sending was never ended', `'sending', now() - interval '32 minutes', now()`],
      ['that wait for longer than they are tried', `'pending', NULL, now() - interval '26 hours'`],
    ] as const) {
      it(`is named with its notifications ${what}`, async () => {
        await notify(fields)
        const { problems, find } = await examine(settingsOf(database.url))
        expect(problems).to.deep.equal(['error incidents.notifications_stuck'])
        expect(find('incidents.notifications_stuck').seen).to.match(/^1 notification\(s\), .* such as /)
      })
    }
  })

  describe('a retry job', () => {
    let jobId: string
    let deliveryId: string
    let end: () => Promise<unknown>

    beforeEach(async () => {
      const backlog = { organisationId, webhookId, state: 'waiting', count: 1 } as const
      deliveryId = (await writeBacklog(database.dataSource, backlog))[0]!
      jobId = newId()
      await run(
        `INSERT INTO retry_job (id, organisation_id, mode, requested_by, sweep_at, created_at)
         VALUES ($1, $2, 'force', 'mem_1', now() + interval '9 seconds', now() - interval '1 hour')`,
        ...[jobId, organisationId],
      )
      await run(
        `INSERT INTO retry_job_webhook (job_id, webhook_id, total, cursor, under_way, under_way_numbers)
         VALUES ($1, $2, 1, $3, ARRAY[$3::uuid], '{8}')`,
        ...[jobId, webhookId, deliveryId],
      )
      end = await startWorkflow(retryWorkflowId(jobId))
    })
    afterEach(() => end().catch(() => undefined))

    it('is no problem while its deliveries wait for their endpoints', async () => {
      expect(await problemsNow()).to.deep.equal([])
    })

    for (const sweepAt of [`now() - interval '2 minutes'`, 'NULL']) {
      it(`is named when the sweeper does not examine it (${sweepAt})`, async () => {
        await run(`UPDATE retry_job SET sweep_at = ${sweepAt}`)
        expect(await problemsNow()).to.deep.equal(['error retry_jobs.unswept'])
      })
    }

    it('is named when no workflow runs it', async () => {
      await end()
      const { problems, find } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal(['error retry_jobs.workflow_gone'])
      expect(find('retry_jobs.workflow_gone').seen).to.include(jobId)
    })

    it('is named when its first step was never made', async () => {
      await run(`UPDATE retry_job_webhook SET cursor = NULL, under_way = '{}', under_way_numbers = '{}'`)
      expect(await problemsNow()).to.deep.equal(['error retry_jobs.no_progress'])
      await run(`UPDATE retry_job SET created_at = now()`)
      expect(await problemsNow()).to.deep.equal([])
    })

    it('is no problem while its webhook is disabled, or was enabled a moment ago', async () => {
      await run(`UPDATE retry_job_webhook SET cursor = NULL, under_way = '{}', under_way_numbers = '{}'`)
      for (const change of ['enabled = false', 'enabled = true, updated_at = now()']) {
        await run(`UPDATE webhook SET ${change}`)
        expect(await problemsNow(), change).to.deep.equal([])
      }
    })

    it('is no problem as a replay that has passed events', async () => {
      await run(`UPDATE retry_job_webhook SET cursor = NULL, under_way = '{}', under_way_numbers = '{}'`)
      await run(`UPDATE retry_job_webhook SET event_cursor = 7`)
      expect(await problemsNow()).to.deep.equal([])
    })

    it('is named when attempts that have ended are not counted', async () => {
      const attempt = (ago: string) =>
        run(
          `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome)
           VALUES ($1, 8, $2, 'retry', 'https://receiver.example.com/', now() - $3::interval, 10, 'failed')
           ON CONFLICT (delivery_id, number) DO UPDATE SET started_at = excluded.started_at`,
          ...[deliveryId, webhookId, ago],
        )
      await attempt('3 seconds')
      expect(await problemsNow()).to.deep.equal([])
      await attempt('6 minutes')
      expect(await problemsNow()).to.deep.equal(['error retry_jobs.no_progress'])
    })

    it('is no problem once it is done', async () => {
      await run(`UPDATE retry_job SET state = 'done', sweep_at = NULL`)
      await end()
      expect(await problemsNow()).to.deep.equal([])
    })
  })

  describe('an erasure', () => {
    let end: () => Promise<unknown>

    beforeEach(async () => {
      await insertErasure(database.dataSource, organisationId)
      await run(`UPDATE organisation_erasure SET requested_at = now() - interval '1 hour', sweep_at = now()`)
      end = await startWorkflow(erasureWorkflowId(organisationId))
    })
    afterEach(() => end().catch(() => undefined))

    it('is no problem while its workflow runs', async () => {
      expect(await problemsNow()).to.deep.equal([])
    })

    it('is named when the sweeper does not examine it', async () => {
      await run(`UPDATE organisation_erasure SET sweep_at = now() - interval '2 minutes'`)
      expect(await problemsNow()).to.deep.equal(['error erasures.unswept'])
    })

    it('is named when its activity fails again and again', async () => {
      await end()
      const taskQueue = `erasing-${newId()}`
      const native = await NativeConnection.connect({ address: testServers().temporalAddress })
      const worker = await Worker.create({
        connection: native,
        taskQueue,
        workflowsPath: WORKFLOWS,
        activities: {
          eraseOrganisation() {
            const message = 'violates foreign key constraint'
            return Promise.reject(ApplicationFailure.create({ message, nextRetryDelay: '1 millisecond' }))
          },
        },
      })
      const workflowId = erasureWorkflowId(organisationId)
      await worker.runUntil(async () => {
        const handle = await client.workflow.start('eraseOrganisation', {
          ...{ workflowId, taskQueue, args: [{ organisationId }] },
        })
        end = () => handle.terminate()
        await eventually(async () => expect(await countActivityFailures(client, workflowId)).to.be.above(2))
        expect(await problemsNow()).to.deep.equal(['error erasures.workflow_stuck'])
      })
      await native.close()
    })

    it('is named when no workflow runs it', async () => {
      await end()
      const { problems, find } = await examine(settingsOf(database.url))
      expect(problems).to.deep.equal(['error erasures.workflow_gone'])
      expect(find('erasures.workflow_gone').seen).to.include(organisationId)
    })
  })
})
