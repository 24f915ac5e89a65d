import { parseArgs } from 'node:util'
import { loadConfig } from '../../src/config/load.ts'
import type { BenchOptions, Engine, FirstAttempt } from './scenario.ts'
import { SCENARIOS } from './scenarios/index.ts'

const ENGINES: readonly Engine[] = ['dev', 'postgres']
const FIRST_ATTEMPTS: readonly FirstAttempt[] = ['workflow', 'overflow', 'direct']

/** The number that Temporal was measured with before; it can be set, since it says how far Temporal scales. */
const HISTORY_SHARDS = '8'

/** So that their pools, of 20 connections each, fit into the 300 that PostgreSQL is started with. */
const MOST_PROCESSES = 12

export const USAGE = [
  'Usage: npm run bench -- [SCENARIO …] [OPTION …]',
  '',
  ...SCENARIOS.map(({ letter, name, title }) => `  ${letter}  ${name.padEnd(10)} ${title}`),
  '',
  '  --first-attempt LIST   workflow, overflow, direct, separated by commas (the default of Posthorn)',
  '  --engine dev|postgres  the development server on SQLite, or Temporal 1.31.2 on PostgreSQL (dev)',
  `  --shards N             history shards of the latter (${HISTORY_SHARDS})`,
  '  --processes N          Posthorns on the same database and engine, published to in turn (1)',
  '  --tls                  receivers speak TLS',
  '  --rest SECONDS         between the bursts of (c), in overflow and direct (0)',
  '  --quick                small numbers: whether it works, not how fast it is',
  '  --json FILE            writes the results there as well',
  '  --pictures FOLDER      where scenarios with curves (tables) leave them, as SVG',
  '',
  'A running product, from outside, as lines of JSON (see test/bench/README.md):',
  '  --target URL           its API',
  '  --adapter FILE         how to make a customer and publish; for Posthorn unless given',
  '  --receiver HOST        this machine, as the product reaches it (127.0.0.1)',
  '  --settings TEXT        its version and settings, for the manifest',
].join('\n')

/** Reads the command line. Throws an Error that describes what is wrong with it. */
export function parseOptions(args: readonly string[]): BenchOptions | 'help' {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      'first-attempt': { type: 'string', default: loadConfig({}, ['firstAttempt']).firstAttempt },
      engine: { type: 'string', default: 'dev' },
      shards: { type: 'string', default: HISTORY_SHARDS },
      processes: { type: 'string', default: '1' },
      tls: { type: 'boolean', default: false },
      rest: { type: 'string', default: '0' },
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      pictures: { type: 'string' },
      target: { type: 'string' },
      adapter: { type: 'string' },
      receiver: { type: 'string', default: '127.0.0.1' },
      settings: { type: 'string', default: '' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  const unknown = positionals.filter((given) => !SCENARIOS.some(isNamed(given)))
  if (unknown.length > 0) throw new Error(`no scenario ${unknown.join(', ')}\n\n${USAGE}`)
  const scenarios = SCENARIOS.filter((scenario) => positionals.some((given) => isNamed(given)(scenario)))
  return {
    scenarios: scenarios.length === 0 ? SCENARIOS : scenarios,
    firstAttempts: values['first-attempt']
      .split(',')
      .map((given) => oneOf('--first-attempt', FIRST_ATTEMPTS, given)),
    engine: oneOf('--engine', ENGINES, values.engine),
    shards: integer('--shards', values.shards),
    processes: integer('--processes', values.processes, { most: MOST_PROCESSES }),
    tls: values.tls,
    restMs: integer('--rest', values.rest, { least: 0 }) * 1_000,
    quick: values.quick,
    jsonFile: values.json ?? null,
    pictures: values.pictures ?? null,
    target:
      values.target === undefined
        ? null
        : {
            url: values.target.replace(/\/$/, ''),
            adapterFile: values.adapter ?? null,
            receiverHost: values.receiver,
            settings: values.settings,
          },
  }
}

function isNamed(given: string) {
  return ({ letter, name }: { letter: string; name: string }): boolean => given === letter || given === name
}

function integer(option: string, given: string, { least = 1, most = Infinity } = {}): number {
  const value = Number(given)
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new Error(`${option} takes a number from ${least} ${most === Infinity ? 'on' : `to ${most}`}`)
}

function oneOf<T extends string>(option: string, allowed: readonly T[], given: string): T {
  const found = allowed.find((value) => value === given.trim())
  if (found === undefined) throw new Error(`${option} takes ${allowed.join(', ')}`)
  return found
}
