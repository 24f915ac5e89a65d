import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Facts, PlayRecord, PlayRun } from './record.ts'

/** The lists of a record, by the `type` of their lines. */
const LISTS = {
  webhook: 'webhooks',
  publication: 'publications',
  action: 'actions',
  fault: 'faults',
  post: 'posts',
  stream: 'streams',
  mail: 'mails',
  process: 'processes',
} as const

const FACTS = {
  event_row: 'events',
  delivery_row: 'deliveries',
  attempt_row: 'attempts',
  incident_row: 'incidents',
  notification_row: 'notifications',
  retry_job_row: 'retryJobs',
  erasure_row: 'halfErased',
} as const

/** The temporary folder of a test run goes with it. */
const KEPT = process.env['POSTHORN_TEST_KEPT'] ?? tmpdir()

type Line = { type: string } & Record<string, unknown>

/**
 * Writes a record as JSON lines, and the logs of the processes beside it. `file`: POSTHORN_PLAY_HISTORY, or one in a new
 * folder. Returns its path.
 */
export function writeHistory(
  record: PlayRecord,
  file = join(mkdtempSync(join(KEPT, `posthorn-play-${record.seed}-`)), 'history.jsonl'),
): string {
  const { seed, attemptTimeoutMs, notifyAfterMs, victimMs, queuedMs, endedAt, facts } = record
  const lines: object[] = [
    { type: 'run', seed, attemptTimeoutMs, notifyAfterMs, victimMs, queuedMs, endedAt },
  ]
  for (const [type, list] of Object.entries(LISTS))
    for (const one of record[list]) lines.push({ type, ...one, ...(type === 'process' ? { log: '' } : {}) })
  for (const [type, list] of Object.entries(FACTS))
    for (const one of facts?.[list] ?? [])
      lines.push({ type, ...(typeof one === 'string' ? { organisationId: one } : one) })
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  for (const { name, log } of record.processes) writeFileSync(`${file}.${name.replace(' ', '-')}.log`, log)
  return file
}

/**
 * Reads a history. Only `run`, `webhook` and `post` lines are needed; without rows, what they prove is not checked.
 * Throws with the number of the line that cannot be read.
 */
export function readHistory(file: string): PlayRecord {
  const lists = Object.fromEntries(Object.values(LISTS).map((list) => [list, [] as object[]]))
  const facts = Object.fromEntries(Object.values(FACTS).map((list) => [list, [] as unknown[]]))
  let run: object | null = null
  let hasFacts = false
  for (const [index, text] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (text.trim() === '') continue
    const { type, ...rest } = parseLine(text, `${file}:${index + 1}`)
    if (type === 'run') run = rest
    else if (type in LISTS) lists[LISTS[type as keyof typeof LISTS]]!.push(rest)
    else if (type in FACTS) {
      hasFacts = true
      facts[FACTS[type as keyof typeof FACTS]]!.push(type === 'erasure_row' ? rest['organisationId'] : rest)
    } else throw new Error(`${file}:${index + 1} has the unknown type "${type}"`)
  }
  if (run === null) throw new Error(`${file} has no line of the type "run"`)
  return {
    // Lines of an earlier release, and of other senders, may lack it.
    ...({ queuedMs: 0, ...run } as PlayRun),
    ...(lists as unknown as Omit<PlayRecord, keyof PlayRun | 'facts'>),
    facts: hasFacts ? (facts as unknown as Facts) : null,
  }
}

/** JSON has no Infinity: what had no end was written as null. */
function parseLine(text: string, where: string): Line {
  try {
    const parsed = JSON.parse(text, (key, value: unknown) =>
      key === 'to' && value === null ? Infinity : value,
    ) as Line | null
    if (typeof parsed?.type === 'string') return parsed
  } catch {
    // Reported below.
  }
  throw new Error(`${where} is not a JSON object with a "type"`)
}
