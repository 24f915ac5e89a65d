import pLimit, { type LimitFunction } from 'p-limit'
import type { Config } from '../../config/load.ts'
import { SETTINGS } from '../../config/settings.ts'
import { type ProblemCode, PROBLEMS } from './problems.ts'
import { singleLine } from '../../domain/text-rules.ts'
import { visibleText, describeError } from '../../process/visible-text.ts'
import { withTimeLimit } from '../../temporal/calls.ts'
import { Connection } from '@temporalio/client'
import type { DataSource } from 'typeorm'
import { closeDataSource, createDataSource } from '../../db/connection/data-source.ts'
import { readTemporalCredentials, type CREDENTIAL_SETTINGS } from '../../process/service-settings.ts'

/** One check, ready to run. */
export type Check = {
  /** Also the code of its finding where there is no problem. */
  name: string
  /** The names of earlier checks without which this one cannot run. */
  needs: readonly string[]
  /** The problem that an error or the time limit stands for. */
  failure: ProblemCode
  /** The variables that it needs and that are not valid. */
  badVariables: readonly string[]
  /** Where it may take longer than others. */
  timeoutMs?: number
  run(): Promise<Finding[]>
}

/** Defines a check that reads some settings. It is skipped where one of them is not valid. */
export function defineCheck<Name extends keyof Config = never>(
  config: Partial<Config>,
  definition: {
    name: string
    settings: readonly Name[]
    needs?: readonly string[]
    failure: ProblemCode
    timeoutMs?: number
    run: (config: Pick<Config, Name>) => Finding[] | Promise<Finding[]>
  },
): Check {
  const { name, settings, needs = [], failure, timeoutMs, run } = definition
  const bad = settings.filter((setting) => config[setting] === undefined)
  return {
    name,
    needs,
    failure,
    ...(timeoutMs !== undefined && { timeoutMs }),
    badVariables: bad.map((setting) => SETTINGS[setting].variable),
    // Complete where it runs: a check with a bad variable is skipped.
    run: async () => run(config as Pick<Config, Name>),
  }
}

/** The areas, in the order of the output. */
const AREAS = [
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
  'retention',
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

/** Returns the problems that there are, or `fine` where there is none. */
export function problemsOr(fine: Finding, problems: readonly (Finding | false)[]): Finding[] {
  const found = problems.filter((finding) => finding !== false)
  return found.length > 0 ? found : [fine]
}

/** Creates the finding of a check that could not run. */
function skipped(check: string, reason: string): Finding {
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

/** The time for one check, in which it is not waiting for another. */
const CHECK_TIMEOUT_MS = 5_000

/** What needs this check reads the database. */
const DATABASE_CHECK = 'database.connection'

const DATABASE_CHECKS_AT_ONCE = 4

/**
 * Runs all checks at the same time, but for {@link DATABASE_CHECKS_AT_ONCE} of those that read the database, each as soon
 * as those that it needs have ended, and returns what they found, by area and in the order of `checks`. Never rejects: a
 * check that throws or takes longer than its own `timeoutMs`, or else this one, is a problem of its own, and those that
 * need it are skipped.
 */
export async function runChecks(
  checks: readonly Check[],
  { timeoutMs = CHECK_TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<Finding[]> {
  const results = new Map<string, Promise<Finding[]>>()
  const inDatabase = pLimit(DATABASE_CHECKS_AT_ONCE)
  for (const check of checks)
    results.set(check.name, runAfterNeeded(check, { results, inDatabase, timeoutMs }))
  const found = (await Promise.all(results.values())).flat()
  return AREAS.flatMap((area) => found.filter(({ code }) => code.startsWith(`${area}.`)))
}

async function runAfterNeeded(
  check: Check,
  context: {
    results: ReadonlyMap<string, Promise<Finding[]>>
    inDatabase: LimitFunction
    timeoutMs: number
  },
): Promise<Finding[]> {
  const { name, needs, badVariables, failure } = check
  const { results, inDatabase, timeoutMs } = context
  const [badVariable] = badVariables
  if (badVariable !== undefined) return [skipped(name, `${badVariable} is not valid`)]
  for (const needed of needs) {
    const findings = (await results.get(needed)) ?? []
    if (findings.some(({ level }) => level === 'error' || level === 'skipped'))
      return [skipped(name, `it needs ${needed}`)]
  }
  const limits = {
    what: 'the check',
    timeoutMs: check.timeoutMs ?? timeoutMs,
    signal: new AbortController().signal,
  }
  const run = () => withTimeLimit(check.run(), limits, () => Promise.resolve())
  try {
    return await (needs.includes(DATABASE_CHECK) ? inDatabase(run) : run())
  } catch (error) {
    return [problem(failure, `${name}: ${describeError(error)}`)]
  }
}

/** What all checks share. `open` connects with its first call, and rejects where that is impossible. */
type Access<Settings, Opened> = {
  open(config: Settings): Promise<Opened>
  /** Never rejects. */
  close(): Promise<void>
}

/** The connections of all checks to a database. */
export type DatabaseAccess = Access<Pick<Config, 'databaseUrl' | 'databasePooler'>, DataSource>

/** The connection of all checks to Temporal. */
export type TemporalAccess = Access<
  Pick<Config, 'temporalAddress' | (typeof CREDENTIAL_SETTINGS)[number]>,
  Connection
>

/** Ends before the check does, so that the reason is shown. */
const CONNECT_TIMEOUT_MS = CHECK_TIMEOUT_MS - 500

/** A check runs two statements at the same time at most, and so waits for no other. */
const POOL_SIZE = 2 * DATABASE_CHECKS_AT_ONCE

/** Ends before the statement does, so that the reason is shown. */
const LOCK_TIMEOUT_MS = 2_000

function createAccess<Settings, Opened>(
  connect: (config: Settings) => Promise<Opened>,
  close: (opened: Opened) => Promise<void>,
): Access<Settings, Opened> {
  let opening: Promise<Opened> | null = null
  return {
    open: (config) => (opening ??= connect(config)),
    async close() {
      // Where it was never open there is nothing to close.
      await opening?.then(close).catch(() => undefined)
    },
  }
}

export function createDatabaseAccess(): DatabaseAccess {
  return createAccess(
    ({ databaseUrl, databasePooler }) =>
      createDataSource({
        url: databaseUrl,
        poolSize: POOL_SIZE,
        pooler: databasePooler,
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
        statementTimeoutMs: CONNECT_TIMEOUT_MS,
        lockTimeoutMs: LOCK_TIMEOUT_MS,
      }).initialize(),
    closeDataSource,
  )
}

export function createTemporalAccess(): TemporalAccess {
  return createAccess(
    async (config) =>
      Connection.connect({
        address: config.temporalAddress,
        ...readTemporalCredentials(config),
        connectTimeout: CONNECT_TIMEOUT_MS,
        // No retries: the first error is the finding, and a retry after `close` would end the process.
        interceptors: [],
      }),
    (connection) => connection.close(),
  )
}
