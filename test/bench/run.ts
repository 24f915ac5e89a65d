import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeError } from '../../src/process/visible-text.ts'
import { onStopSignal, createStack } from '../../src/process/process-end.ts'
import { describeMachine } from './measure/machine.ts'
import { openFloor } from './floor/floor.ts'
import { parseOptions, USAGE } from './options.ts'
import { startRig } from './rig.ts'
import type { BenchOptions, Findings, FirstAttempt } from './scenario.ts'
import { openStage } from './stage.ts'
import { formatTable } from './table.ts'
import { benchTarget } from './target/bench-target.ts'

/** `npm run bench`: see the usage. Exits with 1 when a promise was broken, whatever the figures are. */
type Result = Findings & { scenario: string; firstAttempt: FirstAttempt; tookSeconds: number }

const startedAt = Date.now()
const stack = createStack()
/** Once interrupted, whatever fails does so because its parts are being stopped. */
const state = { isInterrupted: false }

try {
  const options = parseOptions(process.argv.slice(2))
  if (options === 'help') {
    process.stdout.write(`${USAGE}\n`)
  } else {
    onStopSignal(async () => {
      state.isInterrupted = true
      await stack.stop()
      process.exit(1)
    })
    const { target, quick } = options
    process.exitCode = target === null ? await run(options) : await benchTarget(target, quick, stack)
  }
} catch (error) {
  if (!state.isInterrupted) process.stderr.write(`${describeError(error)}\n`)
  process.exitCode = 1
} finally {
  for (const problem of await stack.stop()) process.stderr.write(`Could not stop ${problem}\n`)
}

async function run(wanted: BenchOptions): Promise<number> {
  const rig = await startRig(wanted, stack, say)
  const machine = await describeMachine(rig.folder)
  say(machine.summary)
  const results: Result[] = []
  for (const firstAttempt of wanted.firstAttempts) {
    for (const scenario of wanted.scenarios) {
      const { name, letter, title } = scenario
      say(`(${letter}) ${name}, FIRST_ATTEMPT=${firstAttempt}: ${title}`)
      const beganAt = Date.now()
      const { picture, ...findings } = await scenario.run({
        firstAttempt,
        restMs: wanted.restMs,
        quick: wanted.quick,
        say: (line) => say(`    ${line}`),
        generator: rig.generator,
        receiver: rig.receiver,
        openStage: (plan) => openStage(rig, firstAttempt, plan),
        openFloor: (path) => openFloor(rig, path),
      })
      const tookSeconds = Math.round((Date.now() - beganAt) / 1_000)
      results.push({ scenario: name, firstAttempt, tookSeconds, ...findings })
      const heading = `(${letter}) ${name}, ${firstAttempt}`
      process.stdout.write(`\n${formatTable(heading, findings.rows)}\n`)
      for (const [title, rows] of Object.entries(findings.details ?? {}))
        process.stdout.write(`${formatTable(`${heading}: ${title}`, rows)}\n`)
      for (const problem of findings.problems) say(`PROBLEM: ${problem}`)
      if (picture !== undefined && wanted.pictures !== null)
        writeFileSync(join(wanted.pictures, `${name}.svg`), picture)
      // After each: a run that is cut off has not been for nothing.
      if (wanted.jsonFile !== null) writeJson(wanted.jsonFile, machine, wanted, results)
    }
  }
  const problems = results.flatMap((result) => result.problems)
  say(problems.length === 0 ? 'nothing lost, doubled or early' : `${problems.length} PROBLEMS, see above`)
  return problems.length === 0 ? 0 : 1
}

function writeJson(file: string, machine: object, wanted: BenchOptions, results: Result[]): void {
  const { engine, shards, processes, tls, restMs, quick } = wanted
  const given = { engine, ...(engine === 'postgres' ? { shards } : {}), processes, tls, restMs, quick }
  writeFileSync(file, `${JSON.stringify({ machine, options: given, results }, null, 2)}\n`)
}

function say(line: string): void {
  const seconds = ((Date.now() - startedAt) / 1_000).toFixed(0).padStart(4)
  process.stdout.write(`${seconds} s  ${line}\n`)
}
