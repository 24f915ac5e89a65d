/** Returns one of the options; which one, the explorer decides. */
export type Choose = <Option>(options: readonly Option[]) => Option

/** How many sequences were run, and how many of them were cut at the depth. */
export type Explored = { sequences: number; cut: number }

/** One for all: a stack would cost more than a run. */
const DEPTH_REACHED = new Error('the depth is reached')

/** Runs `run` once for each sequence of choices that it can be given, of `depth` choices at most. */
export async function explore(depth: number, run: (choose: Choose) => Promise<void>): Promise<Explored> {
  const path: { chosen: number; options: number }[] = []
  const explored = { sequences: 0, cut: 0 }
  let step = 0
  const choose: Choose = (options) => {
    if (step === depth) throw DEPTH_REACHED
    const at = path[step] ?? { chosen: 0, options: options.length }
    path[step++] = at
    return options[at.chosen]!
  }
  do {
    step = 0
    explored.sequences++
    try {
      await run(choose)
    } catch (error) {
      if (error !== DEPTH_REACHED) throw error
      explored.cut++
    }
  } while (advance(path))
  return explored
}

/** Changes to the next sequence, depth first; returns false after the last. */
function advance(path: { chosen: number; options: number }[]): boolean {
  for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
    if (++last.chosen < last.options) return true
    path.pop()
  }
  return false
}
