import { checkRecord } from './play/check-record.ts'
import { readHistory } from './play/history.ts'
import type { PlayRecord } from './play/record.ts'
import { report, summarise } from './play/report.ts'

/** `npm run check:ledger FILE`: judges the history of a play, or of any sender, alone. Ends with 1 if a promise is broken. */
const [file] = process.argv.slice(2)

async function judge(record: PlayRecord): Promise<void> {
  const violations = await checkRecord(record)
  process.stdout.write(`${summarise(record)}\n${violations.length} violations\n`)
  if (violations.length === 0) return
  process.stdout.write(`${report(record, violations)}\n`)
  process.exitCode = 1
}

if (file === undefined) {
  process.stderr.write('usage: npm run check:ledger FILE\n')
  process.exitCode = 2
} else await judge(readHistory(file))
