import { setTimeout as delay } from 'node:timers/promises'
import { BURST } from '../load.ts'
import { databaseUsage, usagePerDelivery } from '../measure/database-usage.ts'
import { rounded } from '../measure/distribution.ts'
import { cpuColumns, difference, total, untilQuiet, type Cpu } from '../measure/until-quiet.ts'
import type { Bench, FirstAttempt, Row, Scenario } from '../scenario.ts'
import { HOOK, type Stage } from '../stage.ts'
import { writeWaiting } from '../waiting-deliveries.ts'

const BURST_EVENTS: Record<FirstAttempt, number> = { workflow: 1_000, overflow: 2_000, direct: 5_000 }
const QUICK_BURST_EVENTS = 100
const STEADY_PER_SECOND: Record<FirstAttempt, number> = { workflow: 20, overflow: 20, direct: 50 }
const STEADY_SECONDS = 20
const QUICK_STEADY_SECONDS = 3
const WAITING = 5_000
const QUICK_WAITING = 100
const IDLE_SECONDS = 20
const QUICK_IDLE_SECONDS = 5
const SHOWN_STATEMENTS = 15
const SHOWN_SQL = 90

/** Of a burst and of a steady pace, until everything that follows is done too; and of doing nothing. */
export const cost: Scenario = {
  letter: 'g',
  name: 'cost',
  title: 'processor time, statements, rows and bytes for each delivery, and of doing nothing',
  async run(bench) {
    const stage = await bench.openStage({ webhooks: [HOOK] })
    await untilQuiet(stage)
    const idle = [{ waiting: 0, ...(await measureIdle(bench, stage)) }]
    const { cpu: ofBurst, usage } = await measureBurst(bench, stage)
    const ofSteady = await measureSteady(bench, stage)
    await stage.close()
    idle.push(await measureWaiting(bench))
    return {
      rows: [ofBurst, ofSteady],
      details: {
        'database, for each delivery of the burst': [usage.total],
        'tables, for each delivery of the burst': usage.tables,
        'statements, for each delivery of the burst': usage.statements
          .slice(0, SHOWN_STATEMENTS)
          .map((row) => ({ ...row, sql: String(row['sql']).slice(0, SHOWN_SQL) })),
        'idle, processor ms in a second': idle,
      },
      problems: [],
    }
  },
}

async function measureBurst(
  bench: Bench,
  stage: Stage,
): Promise<{ cpu: Row; usage: ReturnType<typeof usagePerDelivery> }> {
  const events = bench.quick ? QUICK_BURST_EVENTS : BURST_EVENTS[bench.firstAttempt]
  bench.say(`a burst of ${events} events`)
  const before = await databaseUsage(stage.databaseUrl)
  const cpuBefore = stage.cpu()
  await stage.publish(HOOK.eventKey, { pace: BURST, limit: { events } })
  await stage.arrived(HOOK.path, { deliveries: events })
  const cpu = difference(await untilQuiet(stage), cpuBefore)
  const after = await databaseUsage(stage.databaseUrl)
  return { cpu: cpuRow('burst', cpu, events), usage: usagePerDelivery(before, after, events) }
}

async function measureSteady(bench: Bench, stage: Stage): Promise<Row> {
  const perSecond = STEADY_PER_SECOND[bench.firstAttempt]
  const events = perSecond * (bench.quick ? QUICK_STEADY_SECONDS : STEADY_SECONDS)
  bench.say(`${events} events, ${perSecond} a second`)
  await bench.receiver.take()
  const before = stage.cpu()
  await stage.publish(HOOK.eventKey, { pace: { kind: 'open', perSecond }, limit: { events } })
  await stage.arrived(HOOK.path, { deliveries: events })
  return cpuRow(`${perSecond}/s`, difference(await untilQuiet(stage), before), events)
}

function cpuRow(load: string, cpu: Cpu, deliveries: number): Row {
  return { load, deliveries, ...cpuColumns(cpu, deliveries) }
}

async function measureWaiting(bench: Bench): Promise<Row & { waiting: number }> {
  const waiting = bench.quick ? QUICK_WAITING : WAITING
  const stage = await bench.openStage({ webhooks: [HOOK] })
  await writeWaiting(stage, { webhookId: stage.webhookIds[0]!, count: waiting }, bench.say)
  await untilQuiet(stage)
  const idle = await measureIdle(bench, stage)
  await stage.close()
  return { waiting, ...idle }
}

async function measureIdle(bench: Bench, stage: Stage): Promise<Row> {
  const seconds = bench.quick ? QUICK_IDLE_SECONDS : IDLE_SECONDS
  bench.say(`nothing, for ${seconds} seconds`)
  const before = stage.cpu()
  await delay(seconds * 1_000)
  const cpu = difference(stage.cpu(), before)
  const byProcess = Object.entries(cpu).map(([name, ms]) => [name, rounded(ms / seconds)] as const)
  return { total: rounded(total(cpu) / seconds), ...Object.fromEntries(byProcess) }
}
