import { randomInt } from 'node:crypto'
import { checkRecord } from './play/check-record.ts'
import { writeHistory } from './play/history.ts'
import { FAULT_KINDS, planPlay } from './play/plan.ts'
import { CALM_LIMIT_MS, play } from './play/play.ts'
import type { FaultKind } from './play/record.ts'
import { report, summarise } from './play/report.ts'

/** One play each; several are separated by commas. */
const seeds = (process.env['POSTHORN_PLAY_SEED'] ?? String(randomInt(2 ** 31))).split(',').map(Number)
const durationMs = Number(process.env['POSTHORN_PLAY_SECONDS'] ?? 600) * 1_000
/** POSTHORN_PLAY_FAULTS names some of them instead, separated by commas. */
const named = process.env['POSTHORN_PLAY_FAULTS']
const faultKinds = named === undefined ? FAULT_KINDS : (named.split(',') as FaultKind[])

/** For the start, and for faults that are in progress at the end. */
const SET_UP_LIMIT_MS = 240_000

describe('a random play of requests and faults', function () {
  this.timeout(durationMs + 2 * CALM_LIMIT_MS + SET_UP_LIMIT_MS)

  for (const seed of seeds)
    it(`breaks no promise (POSTHORN_PLAY_SEED=${seed}, ${durationMs / 1_000} s)`, async () => {
      const plan = planPlay(seed, durationMs, faultKinds)
      process.stdout.write(`      seed ${seed}: ${plan.endpoints.length} webhooks, ${plan.firstAttempt}\n`)
      const record = await play(plan)
      const violations = await checkRecord(record)
      const file = writeHistory(record, process.env['POSTHORN_PLAY_HISTORY'])
      process.stdout.write(
        `      ${summarise(record)}\n      ${violations.length} violations; history: ${file}\n`,
      )
      if (violations.length > 0) throw new Error(`${report(record, violations)}\nHistory and logs: ${file}`)
    })
})
