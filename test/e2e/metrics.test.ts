import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { groupedBy, readQueries, selectorsOf } from '../helpers/metrics/dashboards.ts'
import { eventually } from '../helpers/eventually.ts'
import { parseExposition, type Exposition } from '../helpers/metrics/exposition.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const METERED = { METRICS_PORT: '0' }

describe('the metrics of real processes', () => {
  let stage: Stage
  let posthorn: PosthornProcess
  let text: string

  before(async () => {
    stage = await createStage()
    posthorn = await stage.start({ taskQueue: 'metrics', env: METERED })
  })
  after(() => stage.close())

  const scrape = async (process = posthorn): Promise<Exposition> => {
    text = await (await process.scrape()).text()
    return parseExposition(text)
  }
  const row = async (state: 'failed' | 'waiting'): Promise<string> => {
    const backlog = { organisationId: stage.member.organisationId, webhookId: stage.webhookId, count: 1 }
    return (await writeBacklog(stage.dataSource, { ...backlog, state }))[0]!
  }

  it('count exactly what happens: publish, fail, retry by schedule and by request, fail permanently', async () => {
    const before = await scrape()
    expect(before.sumOf('posthorn_attempts_total')).to.equal(0)

    const delivered = await stage.publish(posthorn)
    await stage.reaches(delivered, { state: 'completed', attempts: 1 })
    stage.answerWith((index) => (index === 0 ? 503 : 200))
    const failing = await stage.publish(posthorn)
    await stage.reaches(failing, { state: 'completed', attempts: 2 })

    const failed = await row('failed')
    stage.answerWith(() => 200)
    const { organisationId, apiKey } = stage.member
    const path = `/api/orgs/${organisationId}/webhooks/${stage.webhookId}/deliveries/${failed}/retry`
    expect((await posthorn.call('POST', path, { apiKey })).status).to.equal(202)
    await stage.reaches(failed, { state: 'completed', attempts: 11 })

    // It has no workflow: the sweep gives it one, for the last attempt.
    stage.answerWith(() => 503)
    await stage.dataSource.query(
      `UPDATE delivery SET attempts = 9, next_attempt_at = now(), sweep_at = now() WHERE id = $1`,
      [await row('waiting')],
    )

    await eventually(async () => {
      const { valueOf, sumOf } = await scrape()
      const attempts = (outcome: string, failureCode: string, trigger: string) =>
        valueOf('posthorn_attempts_total', { outcome, failure_code: failureCode, trigger })
      expect({
        published: valueOf('posthorn_events_published_total'),
        committed: valueOf('posthorn_deliveries_committed_total'),
        succeeded: attempts('succeeded', 'none', 'schedule'),
        succeededByHand: attempts('succeeded', 'none', 'retry'),
        failed: attempts('failed', 'http_status', 'schedule'),
        attempts: sumOf('posthorn_attempts_total'),
        timed: sumOf('posthorn_attempt_duration_seconds_count'),
        first: valueOf('posthorn_first_attempt_delay_seconds_count'),
        late: valueOf('posthorn_retry_lateness_seconds_count'),
        completed: valueOf('posthorn_deliveries_total', { state: 'completed' }),
        exhausted: valueOf('posthorn_deliveries_total', { state: 'failed' }),
        started: valueOf('posthorn_dispatched_deliveries_total', { result: 'started' }),
        publishCalls: sumOf('posthorn_http_requests_total', { route: 'publishEvent', status: '2xx' }),
        retryCalls: sumOf('posthorn_http_requests_total', { route: 'retryDelivery', status: '2xx' }),
        inFlight: valueOf('posthorn_attempts_in_flight'),
        failedNow: valueOf('posthorn_deliveries', { state: 'failed' }),
        incidents: valueOf('posthorn_incidents_open'),
      }).to.deep.equal({
        published: 2,
        committed: 2,
        succeeded: 2,
        succeededByHand: 1,
        failed: 2,
        attempts: 5,
        timed: 5,
        // The very first goes to an endpoint that never answered: its delay may be the endpoint's.
        first: 1,
        late: 2,
        completed: 3,
        exhausted: 1,
        started: 2,
        publishCalls: 2,
        retryCalls: 1,
        inFlight: 0,
        failedNow: 1,
        incidents: 1,
      })
      expect(valueOf('posthorn_sweep_rows_total', { kind: 'delivery' })).to.be.at.least(1)
    })
  })

  it('contain no id, key, secret, name or address', async () => {
    await scrape()
    const { organisationId, memberId, apiKey } = stage.member
    for (const canary of [organisationId, memberId, apiKey, stage.webhookId, 'cus_1', 'Camping', '127.0.0.1'])
      expect(text).not.to.include(canary)
    expect(text).not.to.match(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}/)
    expect(text).not.to.include(new URL(stage.receiver.url).port + '"')
  })

  it('include all that dashboard and alert rules query, with their labels', async () => {
    const { samples } = await scrape()
    for (const { where, expr } of readQueries()) {
      for (const { name, labels } of selectorsOf(expr)) {
        const named = samples.filter((sample) => sample.name === name)
        const asked = labels.filter(([label]) => label !== 'instance')
        const found = named.filter((sample) =>
          asked.every(([label, pattern]) => pattern.test(sample.labels[label] ?? '')),
        )
        // Of requests that were answered 5xx there are none yet.
        expect(expr.includes('status="5xx"') ? named : found, `${where}: ${name}`).to.not.be.empty
        const known = named.flatMap((sample) => Object.keys(sample.labels))
        expect(['instance', ...known], `${where}: ${expr}`).to.include.members(groupedBy(expr))
      }
    }
  })
})
