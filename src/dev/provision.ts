/** What came of one way: the path, or why there is none. `isFinal` forbids going on to the next way. */
type WayOutcome = { path: string } | { why: string; isFinal?: boolean }

/** One way of getting a program. A way that throws has failed with that message. */
export type Way = {
  /** Named when all ways have failed, such as `go install …`. */
  name: string
  attempt: () => Promise<WayOutcome>
}

/** A program that can be got in several ways, best first. */
export type Provision = {
  /** What it is, such as `the Temporal server`. */
  what: string
  ways: Way[]
  /** What a user can do when every way has failed. */
  waysOut: string[]
}

/**
 * Tries the ways in order and answers the first path.
 *
 * @throws Error naming every way tried, why it failed, and every way out
 */
export async function provision({ what, ways, waysOut }: Provision): Promise<string> {
  const failures: string[] = []
  for (const way of ways) {
    const outcome = await tryWay(way)
    if ('path' in outcome) return outcome.path
    failures.push(`  - ${way.name}: ${outcome.why}`)
    if (outcome.isFinal === true) break
  }
  const exits = waysOut.map((wayOut) => `  - ${wayOut}`)
  throw new Error(
    [`Cannot get ${what}. Tried:`, ...failures, 'What helps, any one of these:', ...exits].join('\n'),
  )
}

async function tryWay(way: Way): Promise<WayOutcome> {
  try {
    return await way.attempt()
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) }
  }
}
