/**
 * A command called with arguments it cannot work with; every problem at once. They never repeat a value, which might be
 * a secret.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly problems: readonly string[]

  /** `command` as it is typed after `posthorn`, such as `api-key create`; empty for `posthorn` itself. */
  constructor(command: string, problems: readonly string[]) {
    const called = `posthorn ${command}`.trimEnd()
    super(
      [
        `${called} cannot be called like this:`,
        ...problems.map((problem) => `  - ${problem}`),
        `${called} --help says how.`,
      ].join('\n'),
    )
    this.problems = problems
  }
}
