/**
 * A command called with arguments it cannot work with; every problem at once. They never repeat a value, which might be
 * a secret.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly problems: readonly string[]

  /** `command` as it was called, such as `api-key create`. */
  constructor(command: string, problems: readonly string[]) {
    const [name = ''] = command.split(' ')
    super(
      [
        `posthorn ${command} cannot be called like this:`,
        ...problems.map((problem) => `  - ${problem}`),
        `posthorn ${name} --help says how.`,
      ].join('\n'),
    )
    this.problems = problems
  }
}
