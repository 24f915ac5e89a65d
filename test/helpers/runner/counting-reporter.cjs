// Mocha's spec reporter, which also writes the real counts and what failed to the file POSTHORN_TEST_COUNTS names,
// and prints the error of each test that is retried.
const { writeFileSync } = require('node:fs')
const Mocha = require('mocha')

module.exports = class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options)
    const failed = []
    runner.on('fail', (test, error) => {
      failed.push(`${test.fullTitle()}: ${String(error?.message ?? error).split('\n', 1)[0]}`)
    })
    runner.on('retry', (test, error) => {
      console.log(`TRIED AGAIN: ${test.fullTitle()}\n${error.stack}`)
    })
    runner.once('end', () => {
      const { passes, failures, pending } = runner.stats
      writeFileSync(process.env.POSTHORN_TEST_COUNTS, JSON.stringify({ passes, failures, pending, failed }))
    })
  }
}
