import { BURST } from '../load.ts'
import { burstFigures } from '../measure/ledger.ts'
import { columns, rounded } from '../measure/distribution.ts'
import { setMark } from '../measure/states-settled.ts'
import { cpuColumns, difference, untilQuiet } from '../measure/until-quiet.ts'
import type { Bench, FirstAttempt, Row } from '../scenario.ts'
import type { Stage } from '../stage.ts'
import type { Load } from './dimensions.ts'

type Measured = { row: Record<string, number>; problems: string[] }

const EVENTS: Record<FirstAttempt, number> = { workflow: 500, overflow: 1_000, direct: 2_000 }
const QUICK_EVENTS = 100
/** In `direct` a burst is over in a second, and a second of a machine is too short a measurement. */
const BURSTS: Record<FirstAttempt, number> = { workflow: 1, overflow: 1, direct: 3 }
/** Of a burst, before the first. */
const LEAD_SHARE = 0.2

/** What a burst costs the stage as it is now: of several, the median of each figure. */
export async function measureLoad(
  bench: Bench,
  stage: Stage,
  load: Load,
): Promise<{ row: Row; problems: string[] }> {
  const events = Math.ceil((bench.quick ? QUICK_EVENTS : EVENTS[bench.firstAttempt]) * load.share)
  // What was just written goes to the disk now, at no measurement's cost.
  await stage.dataSource.query('CHECKPOINT')
  // The first change of a page after a checkpoint logs all of it, and statistics that are new make plans anew.
  const lead = await measureBurst(stage, load, Math.ceil(events * LEAD_SHARE))
  const bursts: Measured[] = []
  for (let left = bench.quick ? 1 : BURSTS[bench.firstAttempt]; left > 0; left--)
    bursts.push(await measureBurst(stage, load, events))
  return {
    row: medians(bursts.map(({ row }) => row)),
    problems: [lead, ...bursts].flatMap(({ problems }) => problems),
  }
}

async function measureBurst(stage: Stage, load: Load, events: number): Promise<Measured> {
  const { eventKey, path, fanOut, bodyBytes } = load
  const deliveries = events * fanOut
  await untilQuiet(stage)
  const mark = await setMark(stage.dataSource)
  const walBefore = await walBytes(stage)
  const cpuBefore = stage.cpu()
  const size = bodyBytes === undefined ? {} : { bodyBytes }
  const published = await stage.publish(eventKey, { ...size, pace: BURST, limit: { events } })
  await stage.arrived(path, { deliveries })
  const cpu = difference(await untilQuiet(stage), cpuBefore)
  const wal = (await walBytes(stage)) - walBefore
  // After the figures: looking costs the database something.
  const unsettled = await stage.settled(mark)
  const { perSecond, problems } = burstFigures(published, await stage.takeArrivals())
  const acknowledgement = columns(
    published.map(({ sentAt, acknowledgedAt }) => acknowledgedAt - sentAt),
    'acknowledged',
  )
  const row = {
    events,
    deliveries,
    perSecond,
    acknowledgedP50Ms: acknowledgement['acknowledgedP50Ms']!,
    walBytes: rounded(wal / deliveries),
    ...cpuColumns(cpu, deliveries),
  }
  return { row, problems: [...problems, ...unsettled] }
}

/** Written by the server, which serves nothing else. */
async function walBytes({ dataSource }: Stage): Promise<number> {
  const [found] = await dataSource.query<[{ bytes: number }]>(
    `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes`,
  )
  return found.bytes
}

function medians(rows: readonly Record<string, number>[]): Record<string, number> {
  const [first = {}] = rows
  const middle = Math.floor(rows.length / 2)
  const median = (name: string): number => rows.map((row) => row[name]!).sort((a, b) => a - b)[middle]!
  return Object.fromEntries(Object.keys(first).map((name) => [name, median(name)]))
}
