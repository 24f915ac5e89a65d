import { compareTurns, measureTurn } from '../measure/turns.ts'
import type { Findings, Scenario } from '../scenario.ts'
import { HOOK } from '../stage.ts'

const EVENTS = 5_000
const QUICK_EVENTS = 200
const ROUNDS = 3
const BURSTS = 3

/** Each round has fresh processes: their first burst, which is cold, and the next ones. */
export const floor: Scenario = {
  letter: 'j',
  name: 'floor',
  title: 'first and later bursts of a process, in turns with the smallest program that does the same',
  async run(bench) {
    const findings: Required<Findings> = { rows: [], problems: [], details: {} }
    const events = bench.quick ? QUICK_EVENTS : EVENTS
    const turns: Awaited<ReturnType<typeof measureTurn>>[][] = Array.from({ length: BURSTS }, () => [])
    for (let round = 0; round < ROUNDS; round++) {
      const stage = await bench.openStage({ webhooks: [HOOK], isWarmedUp: false })
      const ofRound = await bench.openFloor(HOOK.path)
      for (const ofBurst of turns)
        ofBurst.push(await measureTurn(bench, { stage, floor: ofRound, events, round }, findings))
      await ofRound.close()
      await stage.close()
    }
    findings.rows = turns.flatMap((ofBurst, index) => compareTurns({ burst: index + 1 }, ofBurst))
    findings.details['each burst'] = turns.flatMap((ofBurst, burst) =>
      ofBurst.flatMap(({ posthorn, floor: ofFloor }) => [
        { burst: burst + 1, program: 'posthorn', ...posthorn },
        { burst: burst + 1, program: 'floor', ...ofFloor },
      ]),
    )
    return findings
  },
}
