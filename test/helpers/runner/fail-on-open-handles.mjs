// Ends a mocha process that something keeps alive after its last test, with exit code 1: a test left it open.

/** The native part of the Temporal SDK needs seconds to shut down on a busy machine. */
const EXIT_TIMEOUT_MS = Number(process.env.POSTHORN_TEST_EXIT_TIMEOUT_MS ?? 20_000)

/** A mocha process that is stopped ends in order, so that its exit listeners end what its tests have started. */
export function mochaGlobalSetup() {
  process.once('SIGTERM', () => process.exit(143))
}

export function mochaGlobalTeardown() {
  setTimeout(() => {
    console.error(`LEFT OPEN by a test: ${[...new Set(process.getActiveResourcesInfo())].join(', ')}`)
    // Mocha's own exit listener sets the number of failures; this one comes after it.
    process.once('exit', () => (process.exitCode = 1))
    process.exit()
  }, EXIT_TIMEOUT_MS).unref()
}
