import { expect } from 'chai'
import { Registry } from 'prom-client'
import { createDefine } from '../../src/observability/metrics/define.ts'
import { createRelayGauges } from '../../src/observability/metrics/relay.ts'
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

  /** `test/integration/observability` has everything that is counted; here all parts of a process count in one place. */
  it('count what the API, the dispatcher, a worker and the sweeper do', async () => {
    expect((await scrape()).sumOf('posthorn_attempts_total')).to.equal(0)
    const delivered = await stage.publish(posthorn)
    await stage.reaches(delivered, { state: 'completed', attempts: 1 })
    stage.answerWith((index) => (index === 0 ? 503 : 200))
    const failing = await stage.publish(posthorn)
    await stage.reaches(failing, { state: 'completed', attempts: 2 })
    // It has no workflow: the sweep gives it one, for the last attempt.
    stage.answerWith(() => 503)
    const backlog = { organisationId: stage.member.organisationId, webhookId: stage.webhookId, count: 1 }
    const [last] = await writeBacklog(stage.dataSource, { ...backlog, state: 'waiting' })
    await stage.dataSource.query(
      `UPDATE delivery SET attempts = 9, next_attempt_at = now(), sweep_at = now() WHERE id = $1`,
      [last],
    )
    await eventually(async () => {
      const { valueOf, sumOf } = await scrape()
      expect({
        published: valueOf('posthorn_events_published_total'),
        publishCalls: sumOf('posthorn_http_requests_total', { route: 'publishEvent', status: '2xx' }),
        started: valueOf('posthorn_dispatched_deliveries_total', { result: 'started' }),
        attempts: sumOf('posthorn_attempts_total'),
        completed: valueOf('posthorn_deliveries_total', { state: 'completed' }),
        exhausted: valueOf('posthorn_deliveries_total', { state: 'failed' }),
        failedNow: valueOf('posthorn_deliveries', { state: 'failed' }),
        incidents: valueOf('posthorn_incidents_open'),
      }).to.deep.equal({
        published: 2,
        publishCalls: 2,
        started: 2,
        attempts: 4,
        completed: 2,
        exhausted: 1,
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
    const samples = [...(await scrape()).samples, ...(await samplesOfRelay())]
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

/** What `posthorn relay` exposes, which is a process of its own. */
async function samplesOfRelay(): Promise<Exposition['samples']> {
  const registry = new Registry()
  const show = createRelayGauges(createDefine(registry))
  show({ waiting: 0, parked: 0, oldestAge: 0 }, { database: 'up', api: 'up' })
  return parseExposition(await registry.metrics()).samples
}
