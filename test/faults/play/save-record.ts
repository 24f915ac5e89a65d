import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PlayRecord } from './record.ts'

/** Writes the whole record and the logs of the processes to a new folder, for the analysis of a broken promise. */
export function saveRecord(record: PlayRecord): string {
  const folder = mkdtempSync(join(tmpdir(), `posthorn-play-${record.seed}-`))
  const processes = record.processes.map(({ log, ...rest }) => {
    writeFileSync(join(folder, `${rest.name.replace(' ', '-')}.log`), log)
    return rest
  })
  writeFileSync(join(folder, 'record.json'), JSON.stringify({ ...record, processes }, null, 1))
  return folder
}
