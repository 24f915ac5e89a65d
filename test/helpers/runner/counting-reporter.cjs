// Mocha's spec reporter, which also writes the counts, what failed and what was skipped to the file
// POSTHORN_TEST_COUNTS names, and prints the files that took longest.
const { writeFileSync } = require('node:fs')
const { relative } = require('node:path')
const Mocha = require('mocha')

const SHOWN_FILES = 15

module.exports = class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    const failed = []
    const skipped = []
    runner.on('fail', (test, error) => {
      failed.push(`${test.fullTitle()}: ${String(error?.message ?? error).split('\n', 1)[0]}`)
    })
    runner.on('pending', (test) => skipped.push(test.fullTitle()))
    const files = measureFiles(runner)
    runner.once('end', () => {
      const { passes, failures } = runner.stats
      writeFileSync(process.env.POSTHORN_TEST_COUNTS, JSON.stringify({ passes, failures, failed, skipped }))
      if (files.size > 1) printSlowest(files)
    })
  }
}

/** Returns the time of each file and the processor time of this process in it, both in ms, filled while tests run. */
function measureFiles(runner) {
  const files = new Map([['loading the files', { ms: performance.now(), cpuMs: cpuMs() }]])
  let began
  runner.on('suite', ({ parent }) => {
    if (parent?.root) began = { ms: performance.now(), cpuMs: cpuMs() }
  })
  runner.on('suite end', ({ parent, file }) => {
    if (!parent?.root) return
    const name = relative(process.cwd(), file)
    const before = files.get(name) ?? { ms: 0, cpuMs: 0 }
    const ms = before.ms + performance.now() - began.ms
    files.set(name, { ms, cpuMs: before.cpuMs + cpuMs() - began.cpuMs })
  })
  return files
}

function printSlowest(files) {
  const slowest = [...files].sort(([, a], [, b]) => b.ms - a.ms).slice(0, SHOWN_FILES)
  const seconds = (ms) => (ms / 1_000).toFixed(1).padStart(7)
  console.log(
    `The slowest of ${files.size - 1} files, in seconds and processor seconds of the mocha process:`,
  )
  for (const [name, { ms, cpuMs }] of slowest) console.log(`${seconds(ms)}${seconds(cpuMs)}  ${name}`)
}

function cpuMs() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
