import { expect } from 'chai'
import { Registry, register as globalRegistry } from 'prom-client'
import { FAILURE_CODES } from '../../../src/domain/attempt-outcome.ts'
import { createMetrics, type Metrics } from '../../../src/observability/metrics.ts'
import type { RecordedAttempt } from '../../../src/observability/metrics/deliveries.ts'
import { parseExposition, type Exposition } from '../../helpers/metrics/exposition.ts'

const FAILED: RecordedAttempt = {
  succeeded: false,
  failureCode: 'timeout',
  trigger: 'schedule',
  durationMs: 15_000,
  state: 'waiting',
  firstDelayMs: null,
  latenessMs: null,
}
const SUCCEEDED: RecordedAttempt = {
  ...FAILED,
  succeeded: true,
  failureCode: null,
  durationMs: 40,
  state: 'completed',
}

describe('the metrics of a process', () => {
  let registry: Registry
  let metrics: Metrics
  beforeEach(() => {
    registry = new Registry()
    metrics = createMetrics(registry)
  })
  const now = async (): Promise<Exposition> => parseExposition(await registry.metrics())

  /** What `act` added to, by sample; those that stayed as they were are left out. */
  async function movedBy(act: () => void): Promise<Record<string, number>> {
    const key = ({ name, labels }: Exposition['samples'][number]): string =>
      [name, ...Object.values(labels)].join(' ')
    const earlier = new Map((await now()).samples.map((sample) => [key(sample), sample.value]))
    act()
    const changed = (await now()).samples
      .filter(({ name }) => !name.endsWith('_bucket'))
      .map((sample): [string, number] => [key(sample), sample.value - (earlier.get(key(sample)) ?? 0)])
    return Object.fromEntries(changed.filter(([, difference]) => difference !== 0))
  }

  it('begin at 0 for every failure code, state and channel', async () => {
    const { samples, valueOf } = await now()
    for (const code of FAILURE_CODES)
      for (const trigger of ['schedule', 'retry'])
        expect(
          valueOf('posthorn_attempts_total', { outcome: 'failed', failure_code: code, trigger }),
        ).to.equal(0)
    for (const state of ['completed', 'failed', 'stopped'])
      expect(valueOf('posthorn_deliveries_total', { state })).to.equal(0)
    for (const kind of ['1', '2'])
      for (const channel of ['email', 'push'])
        for (const state of ['sent', 'refused', 'failed', 'unknown', 'obsolete'])
          expect(valueOf('posthorn_notifications_total', { kind, channel, state })).to.equal(0)
    for (const { value } of samples) expect(value).to.equal(0)
  })

  it('count and time a failed retry and its lateness, but count no completion', async () => {
    expect(await movedBy(() => metrics.attemptRecorded({ ...FAILED, latenessMs: 5 }))).to.deep.equal({
      'posthorn_attempts_total failed timeout schedule': 1,
      'posthorn_attempt_duration_seconds_count failed': 1,
      'posthorn_attempt_duration_seconds_sum failed': 15,
      posthorn_retry_lateness_seconds_count: 1,
      posthorn_retry_lateness_seconds_sum: 0.005,
    })
  })

  it('time nothing for an attempt that was never sent', async () => {
    const lost = { ...FAILED, failureCode: 'worker_lost', state: 'failed', latenessMs: 60_000 } as const
    expect(await movedBy(() => metrics.attemptRecorded(lost))).to.deep.equal({
      'posthorn_attempts_total failed worker_lost schedule': 1,
      'posthorn_deliveries_total failed': 1,
    })
  })

  it('record zero seconds when a clock was set back', async () => {
    const moved = await movedBy(() => metrics.attemptRecorded({ ...SUCCEEDED, latenessMs: -5_000 }))
    expect(moved).to.include({ posthorn_retry_lateness_seconds_count: 1 })
    expect(moved).not.to.have.property('posthorn_retry_lateness_seconds_sum')
  })

  it('count and time requests by route, and by class of their status', async () => {
    const request = { route: 'publishEvent', method: 'POST', durationMs: 20 }
    const moved = await movedBy(() => {
      metrics.requestAnswered({ ...request, status: 202 })
      metrics.requestAnswered({ ...request, status: 422 })
    })
    expect(moved).to.deep.equal({
      'posthorn_http_requests_total publishEvent POST 2xx': 1,
      'posthorn_http_requests_total publishEvent POST 4xx': 1,
      'posthorn_http_request_duration_seconds_count publishEvent': 2,
      'posthorn_http_request_duration_seconds_sum publishEvent': 0.04,
    })
  })

  it('omit the last sweep of a process without a sweeper', async () => {
    const last = async () => (await now()).valueOf('posthorn_sweep_last_pass_timestamp_seconds')
    expect(await last()).to.equal(undefined)
    metrics.sweepStarted()
    expect(await last()).to.be.closeTo(Date.now() / 1_000, 5)
  })

  it('stay in their own registry and leave the global one empty', async () => {
    metrics.eventPublished(1)
    createMetrics(new Registry())
    expect(globalRegistry.getMetricsAsArray()).to.deep.equal([])
    expect((await now()).valueOf('posthorn_events_published_total')).to.equal(1)
  })
})
