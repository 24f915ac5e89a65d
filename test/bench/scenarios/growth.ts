import { DIMENSIONS, type Dimension } from '../growth/dimensions.ts'
import { measureLoad } from '../growth/measure-load.ts'
import { rounded } from '../measure/distribution.ts'
import type { Bench, Findings, Row, Scenario } from '../scenario.ts'

/** More than the hundred that are allowed by default. */
const ENV = { WEBHOOKS_PER_ORGANISATION: '1000' }

/** Figures that are compared. The first is the better the larger it is, the others the smaller. */
const COMPARED = ['perSecond', 'acknowledgedP50Ms', 'totalMs', 'walBytes']

/**
 * Bursts of one webhook's events with 1 KB each, while one thing grows from little to much. The main table compares
 * both ends; the others have the figures of each size, those of processor time and log for each delivery.
 */
export const growth: Scenario = {
  letter: 'h',
  name: 'growth',
  title: 'how the cost of a delivery grows with webhooks, fan-out, waiting deliveries and payload',
  async run(bench) {
    const findings: Required<Findings> = { rows: [], problems: [], details: {} }
    for (const dimension of DIMENSIONS) {
      const rows = await measure(bench, dimension, findings.problems)
      findings.details[dimension.title] = rows
      findings.rows.push(compare(dimension, rows))
    }
    return findings
  },
}

async function measure(bench: Bench, dimension: Dimension, problems: string[]): Promise<Row[]> {
  const { column, webhooks, levels } = dimension
  const stage = await bench.openStage({ webhooks, env: ENV })
  const rows: Row[] = []
  for (const { size, grow, load } of levels(bench.quick)) {
    await grow?.(bench, stage)
    bench.say(`${column}: ${size}`)
    const { row, problems: broken } = await measureLoad(bench, stage, load)
    rows.push({ [column]: size, ...row })
    problems.push(...broken.map((problem) => `${column} ${size}: ${problem}`))
  }
  await stage.close()
  return rows
}

function compare({ title, column }: Dimension, rows: readonly Row[]): Row {
  const [first, last] = [rows[0]!, rows.at(-1)!]
  const times = COMPARED.map(
    (name) => [`${name}Times`, rounded(Number(last[name]) / Number(first[name]))] as const,
  )
  return { grows: title, from: first[column]!, to: last[column]!, ...Object.fromEntries(times) }
}
