import { SETTINGS } from '../config/settings.ts'
import { FAILURE_TEXTS } from '../domain/attempt-outcome.ts'
import { PROBLEMS } from '../domain/problems.ts'
import { LOG_EVENTS } from '../observability/log-events.ts'

/** Lists of the documents, each from what the code has: one item a line, wrapped at {@link MAX_COLUMNS}. */
const MAX_COLUMNS = 120

export function settingList(): string {
  return listOf(
    Object.values(SETTINGS).map(
      ({ variable, fallback, description }) =>
        `${code(variable)} (${defaultInWords(fallback)}): ${description}`,
    ),
  )
}

function defaultInWords(fallback: string | undefined): string {
  if (fallback === undefined) return 'required'
  return fallback === '' ? 'empty' : code(fallback)
}

/** By status. */
export function problemList(): string {
  const statuses = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))]
  return statuses
    .map((status) => {
      const problems = Object.entries(PROBLEMS).filter(([, problem]) => problem.status === status)
      const items = problems.map(([name, { cause, cure }]) => `${code(name)}: ${cause} **Cure:** ${cure}`)
      return `#### ${String(status)}\n\n${listOf(items)}`
    })
    .join('\n')
}

export function failureCodeList(): string {
  return listOf(
    Object.entries(FAILURE_TEXTS).map(
      ([name, { cause, cure }]) => `${code(name)}: ${cause} **Cure:** ${cure}`,
    ),
  )
}

/** The level is shown where it is not `warn`. */
export function logEventList(): string {
  return listOf(
    Object.entries(LOG_EVENTS).map(
      ([name, [level, text]]) => `${code(name)}${level === 'warn' ? '' : ` (${level})`}: ${text}`,
    ),
  )
}

function code(text: string): string {
  return `\`${text}\``
}

/** A Markdown list with an item for each text. */
function listOf(texts: string[]): string {
  return texts.map(listItem).join('')
}

function listItem(text: string): string {
  const lines = ['-']
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`
    if (longer.length > MAX_COLUMNS) lines.push(`  ${word}`)
    else lines[lines.length - 1] = longer
  }
  return `${lines.join('\n')}\n`
}
