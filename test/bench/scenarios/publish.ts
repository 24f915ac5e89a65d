import type { PublishedEvent } from '../harness/generator.ts'
import { refusals } from '../measure/ledger.ts'
import { columns, rounded } from '../measure/distribution.ts'
import type { Bench, Findings, Row, Scenario } from '../scenario.ts'
import { HOOK, type Stage } from '../stage.ts'

const CONCURRENCIES = [1, 16, 64]
/** It has no subscribers. */
const UNHEARD = 'comment:created'

/**
 * From the request to the 202, in a closed loop. Once with events without subscribers, which is publishing
 * alone, and once with one webhook: then deliveries are made meanwhile, on the same processors.
 */
export const publish: Scenario = {
  letter: 'a',
  name: 'publish',
  title: 'acknowledgements per second, and how long one takes',
  async run(bench) {
    const findings: Findings = { rows: [], problems: [] }
    const alone = await bench.openStage({ webhooks: [] })
    for (const concurrency of CONCURRENCIES)
      await measure(bench, alone, { concurrency, webhooks: 0 }, findings)
    await alone.close()
    for (const concurrency of CONCURRENCIES) {
      // A stage of its own: the last one may have left a backlog behind.
      const stage = await bench.openStage({ webhooks: [HOOK] })
      await measure(bench, stage, { concurrency, webhooks: 1 }, findings)
      await stage.close()
    }
    return findings
  },
}

async function measure(
  bench: Bench,
  stage: Stage,
  { concurrency, webhooks }: { concurrency: number; webhooks: 0 | 1 },
  findings: Findings,
): Promise<void> {
  const durationMs = bench.quick ? 1_000 : 8_000
  bench.say(`${concurrency} at once, ${webhooks} webhooks`)
  const published = await stage.publish(webhooks === 0 ? UNHEARD : HOOK.eventKey, {
    pace: { kind: 'closed', concurrency },
    limit: { durationMs },
  })
  findings.rows.push({ webhooks, concurrency, ...figures(published) })
  findings.problems.push(...refusals(published))
}

function figures(published: readonly PublishedEvent[]): Row {
  const first = Math.min(...published.map(({ sentAt }) => sentAt))
  const last = Math.max(...published.map(({ acknowledgedAt }) => acknowledgedAt))
  const took = published.map(({ sentAt, acknowledgedAt }) => acknowledgedAt - sentAt)
  return {
    events: published.length,
    perSecond: rounded((published.length / (last - first)) * 1_000),
    ...columns(took),
  }
}
