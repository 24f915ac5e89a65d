/** Returns the problems that the error lists which `work` throws. */
export function problemsOf(work: () => unknown): readonly string[] {
  try {
    work()
  } catch (error) {
    if (error instanceof Error && 'problems' in error) return error.problems as readonly string[]
    throw error
  }
  throw new Error('nothing was refused')
}

/** Like `problemsOf`, for work that rejects. */
export async function rejectedProblemsOf(work: Promise<unknown>): Promise<readonly string[]> {
  const settled = await work.then(
    () => () => undefined,
    (error: unknown) => () => {
      throw error
    },
  )
  return problemsOf(settled)
}
