import { randomInt } from 'node:crypto'
import { checkRecord } from './play/check-record.ts'
import { CALM_LIMIT_MS } from './play/calm-down.ts'
import { planPlay } from './play/plan.ts'
import { play } from './play/play.ts'
import type { FaultKind } from './play/record.ts'
import { report, summarise } from './play/report.ts'
import { saveRecord } from './play/save-record.ts'

/** Each comes as often as the others. POSTHORN_PLAY_FAULTS names some of them instead, separated by commas. */
const FAULT_KINDS: readonly FaultKind[] = [
  'kill',
  'pause',
  'clock_step',
  'database_silence',
  'database_cut',
  'recording_error',
  'temporal_silence',
  'temporal_cut',
  'temporal_restart',
  'temporal_wipe',
]

const seed = Number(process.env['POSTHORN_PLAY_SEED'] ?? randomInt(2 ** 31))
const durationMs = Number(process.env['POSTHORN_PLAY_SECONDS'] ?? 60) * 1_000
const named = process.env['POSTHORN_PLAY_FAULTS']
const faultKinds = named === undefined ? FAULT_KINDS : (named.split(',') as FaultKind[])

/** For the start, and for faults that are in progress at the end. */
const SET_UP_LIMIT_MS = 180_000

describe('a random play of requests and faults', function () {
  this.timeout(durationMs + CALM_LIMIT_MS + SET_UP_LIMIT_MS)

  it(`breaks no promise (POSTHORN_PLAY_SEED=${seed}, ${durationMs / 1_000} s)`, async () => {
    const plan = planPlay(seed, durationMs, faultKinds)
    process.stdout.write(`      seed ${seed}: ${plan.commands.join(', ')}, ${plan.firstAttempt}\n`)
    const record = await play(plan)
    process.stdout.write(`      ${summarise(record)}\n`)
    const violations = await checkRecord(record)
    if (violations.length > 0)
      throw new Error(`${report(record, violations)}\nRecord and logs: ${saveRecord(record)}`)
  })
})
