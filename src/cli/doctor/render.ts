import { visibleText } from '../../process/visible-text.ts'
import type { Finding, Level } from './finding.ts'

/** What `posthorn doctor` found: `error` where there is an error, else `warning` where there is one, else `ok`. */
export type Diagnosis = { status: 'ok' | 'warning' | 'error'; version: string; findings: readonly Finding[] }

const LEVEL_WIDTH = 'warning'.length

/** Returns one line for each finding, with its cure, and a last one with the counts. */
export function renderText({ findings }: Diagnosis): string {
  const codeWidth = Math.max(...findings.map(({ code }) => code.length))
  const lines = findings.map(({ level, code, seen, cure }) => {
    const found = visibleText(seen)
    const shown = cure === null ? found : `${found}. Cure: ${cure}`
    return `${level.padEnd(LEVEL_WIDTH)}  ${code.padEnd(codeWidth)}  ${shown}`
  })
  const count = (wanted: Level): number => findings.filter(({ level }) => level === wanted).length
  const counts = `${count('error')} error(s), ${count('warning')} warning(s), ${count('ok')} ok, ${count('skipped')} skipped`
  return [...lines, counts].join('\n')
}

/** Returns one JSON document. */
export function renderJson(diagnosis: Diagnosis): string {
  return JSON.stringify(diagnosis, null, 2)
}
