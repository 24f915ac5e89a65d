import { singleLine } from '../../domain/text-rules.ts'
import { PROBLEMS, type ProblemCode } from './problems.ts'
import { visibleText } from '../../process/visible-text.ts'

/** The areas, in the order of the output. */
export const AREAS = [
  'settings',
  'database',
  'temporal',
  'keys',
  'http',
  'outbound',
  'mail',
  'push',
  'deliveries',
  'incidents',
  'retry_jobs',
  'erasures',
  'relay',
] as const

/** `skipped`: the check could not run, since what it needs has a problem of its own. */
export type Level = 'ok' | 'warning' | 'error' | 'skipped'

/**
 * One line of the result. `code` is that of the problem, or the name of the check where there is none. `seen` never
 * contains a secret; `cure` is null unless there is a problem.
 */
export type Finding = { code: string; level: Level; seen: string; cure: string | null }

const MAX_SEEN_LENGTH = 400

/** Creates the finding of a check without a problem. `check` is its name. */
export function ok(check: string, seen: string): Finding {
  return { code: check, level: 'ok', seen: singleLine(seen, MAX_SEEN_LENGTH), cure: null }
}

/** Creates the finding of a problem, with its level and cure. */
export function problem(code: ProblemCode, seen: string): Finding {
  const { level, cure } = PROBLEMS[code]
  return { code, level, seen: singleLine(seen, MAX_SEEN_LENGTH), cure }
}

/** Creates the finding of a check that could not run. */
export function skipped(check: string, reason: string): Finding {
  return { code: check, level: 'skipped', seen: `not checked: ${reason}`, cure: null }
}

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
