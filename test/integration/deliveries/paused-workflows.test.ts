import { expect } from 'chai'
import { Registry } from 'prom-client'
import type { CommittedDelivery } from '../../../src/deliveries/protocol/commit-events.ts'
import { countBacklog } from '../../../src/db/queries/backlog.ts'
import { requestRetries } from '../../../src/deliveries/protocol/change-deliveries.ts'
import type { Logger } from '../../../src/observability/logger.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { setRow } from '../../helpers/deliveries/set-row.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'
import { eventually } from '../../helpers/eventually.ts'
import { parseExposition } from '../../helpers/metrics/exposition.ts'
import { silentLogger } from '../../helpers/silent-logger.ts'

const SINCE = new Date('2026-05-04T09:02:11.204Z')

describe('deliveries whose workflow is paused in Temporal', () => {
  const suite = useInlineAttempts()

  /** A delivery whose workflow is paused, and whose fifth attempt was due a minute ago. */
  const overdue = async (paused = true): Promise<CommittedDelivery> => {
    const [delivery] = await (await suite.endpoint()).commit(1)
    const late = { dueInMs: -60_000, workflow: true, sweepInMs: -1 }
    await setRow(suite.database.dataSource, delivery!.deliveryId, { state: 'waiting', attempts: 4, ...late })
    if (paused) suite.temporal.paused.set(delivery!.deliveryId, SINCE)
    return delivery!
  }
  const pausedSince = async ({ deliveryId }: CommittedDelivery) => (await suite.row(deliveryId)).paused_since

  for (const mode of ['workflow', 'overflow', 'direct'] as const) {
    it(`are neither attempted, restarted nor woken in \`${mode}\`, and named once`, async () => {
      const delivery = await overdue()
      const logged: unknown[] = []
      const note: Logger['warn'] = (fields) => logged.push(fields)
      const logger = { ...silentLogger, info: note, warn: note, error: note }
      const registry = new Registry()
      const { sweep } = suite.process({ mode, attempts: { logger, metrics: createMetrics(registry) } })
      for (let pass = 1; pass <= 3; pass++) {
        await sweep.runOnce()
        await suite.age(delivery.deliveryId)
      }
      expect(await suite.attemptsOf(delivery.deliveryId)).to.deep.equal([])
      expect([suite.temporal.starts, suite.temporal.woken]).to.deep.equal([[], []])
      expect(await suite.row(delivery.deliveryId)).to.include({ state: 'waiting', attempts: 4 })
      expect(await pausedSince(delivery)).to.deep.equal(SINCE)
      const { deliveryId } = delivery
      const line = { event: 'sweep.found_paused_workflow', deliveryId, attempt: 5, pausedSince: SINCE }
      expect(logged).to.deep.equal([line])
      const recovered = parseExposition(await registry.metrics()).valueOf(
        'posthorn_sweep_recovered_workflows_total',
        {
          reason: 'gone',
        },
      )
      expect(recovered ?? 0).to.equal(0)
    })
  }

  it('are checked again at growing intervals, of at least 15 seconds', async () => {
    const delivery = await overdue()
    await suite.process().sweep.runOnce()
    expect(
      await suite.count(`sweep_at BETWEEN now() + interval '16 s' AND now() + interval '45 s'`),
    ).to.equal(1)
    expect(await pausedSince(delivery)).to.deep.equal(SINCE)
  })

  it('are signalled once for each retry that a user requests', async () => {
    const delivery = await overdue()
    const { organisationId, webhookId, deliveryId } = delivery
    const { sweep } = suite.process()
    for (let request = 1; request <= 2; request++) {
      await requestRetries(suite.database.dataSource, {
        organisationId,
        webhookId,
        ids: [deliveryId],
        states: ['waiting'],
      })
      for (let pass = 1; pass <= 2; pass++) {
        await suite.age(deliveryId)
        await sweep.runOnce()
      }
      expect(suite.temporal.woken).to.have.length(request)
    }
    expect(await suite.attemptsOf(deliveryId)).to.deep.equal([])
  })

  it('are paused still, and named once, where Temporal could not be asked meanwhile', async () => {
    const delivery = await overdue()
    const { sweep } = suite.process()
    await sweep.runOnce()
    suite.temporal.isUnavailable = true
    await suite.age(delivery.deliveryId)
    await sweep.runOnce()
    expect(await suite.count(`sweep_at < now() + interval '4 s'`)).to.equal(1)
    expect(await pausedSince(delivery)).to.deep.equal(SINCE)
  })

  it('go on when they are unpaused, and are not paused any more', async () => {
    const delivery = await overdue()
    const { sweep } = suite.process({ mode: 'workflow' })
    await sweep.runOnce()
    suite.temporal.paused.clear()
    suite.temporal.running.add(delivery.deliveryId)
    await suite.age(delivery.deliveryId)
    await sweep.runOnce()
    expect(await pausedSince(delivery)).to.equal(null)
    expect(suite.temporal.startsOf(delivery.deliveryId)).to.have.length(0)
  })

  it('are not paused any more once they are attempted', async () => {
    const delivery = await overdue()
    const { sweep } = suite.process({ mode: 'direct' })
    await sweep.runOnce()
    suite.temporal.paused.clear()
    await suite.age(delivery.deliveryId)
    await sweep.runOnce()
    await eventually(async () =>
      expect(await suite.row(delivery.deliveryId)).to.include({ state: 'completed', paused_since: null }),
    )
  })

  it('are counted as paused and not as overdue', async () => {
    const [paused] = [await overdue(), await overdue(false)]
    const before = await countBacklog(suite.database.dataSource)
    expect([before.paused, before.overdue.idle]).to.deep.equal([0, 2])
    await suite.database.dataSource.query('UPDATE delivery SET paused_since = now() WHERE id = $1', [
      paused.deliveryId,
    ])
    const { paused: count, overdue: late } = await countBacklog(suite.database.dataSource)
    expect([count, late.idle]).to.deep.equal([1, 1])
  })
})
