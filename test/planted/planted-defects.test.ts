import { expect } from 'chai'
import { checkRecord } from '../faults/play/check-record.ts'
import { unfinished } from '../faults/play/checks/unfinished.ts'
import { planPlay } from '../faults/play/plan.ts'
import { play } from '../faults/play/play.ts'
import { summarise } from '../faults/play/report.ts'
import { DEFECTS, plant } from './defects.ts'

const PLAY_MS = 45_000
const WEBHOOKS = 20
const CALM_MS = 5_000
/** Of which one finds it. */
const SEEDS = [1, 2]
const LIMIT_MS = 600_000

describe('the random play finds', () => {
  for (const {
    what,
    patches,
    faultKinds,
    firstAttempt,
    rule,
    playMs = PLAY_MS,
    calmLimitMs = CALM_MS,
  } of DEFECTS)
    it(what, async function () {
      this.timeout(LIMIT_MS)
      const { program, remove } = plant(patches)
      const begunAt = performance.now()
      const found: string[] = []
      try {
        for (const seed of SEEDS) {
          const plan = planPlay(seed, playMs, faultKinds, WEBHOOKS)
          const record = await play(firstAttempt === undefined ? plan : { ...plan, firstAttempt }, {
            program,
            calmLimitMs,
          })
          const violations = [...(await checkRecord(record)), ...unfinished(record)]
          const own = violations.filter((violation) => rule.test(violation.rule))
          process.stdout.write(
            `      seed ${seed}, ${Math.round((performance.now() - begunAt) / 1_000)} s: ${violations.length} violations\n` +
              `      ${own[0]?.rule}: ${own[0]?.detail.slice(0, 200)}\n      ${summarise(record)}\n`,
          )
          found.push(...own.map(({ detail }) => detail))
          if (found.length > 0) break
        }
      } finally {
        remove()
      }
      expect(found).not.to.deep.equal([])
    })
})
