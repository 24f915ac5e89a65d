/** Prints results for scripts (`print`) and remarks for the user at the terminal (`note`). */
export type Output = { print: (text: string) => void; note: (text: string) => void }

export type Option = {
  /** Without its dashes. */
  name: string
  /** What stands for its value in the help; an option without one is a flag. */
  value?: string
  meaning: string
  isRequired?: true
}

/** What was given to a command, unparsed, and what is wrong with how it was given. */
export type Arguments = {
  /** The command as it is typed after `posthorn`. */
  command: string
  /** Empty where the command takes none. */
  operand: string
  given: ReadonlyMap<string, string>
  problems: string[]
}

/** Runs a command and returns its exit code. Throws UsageError for values that are wrong. */
export type RunCommand = (args: Arguments, output: Output) => Promise<number>

/** A command as data: help, parsing, dispatch and documents all read it. */
export type Command = {
  /** As it is typed after `posthorn`, such as `api-key create`. */
  name: string
  summary: string
  /** Further lines of its help. */
  details?: readonly string[]
  /** What stands for its one operand in the help. */
  operand?: string
  options?: readonly Option[]
  /** What is typed after `posthorn`. */
  examples: readonly string[]
  /** Imports what the command needs: loading all of them takes seconds. */
  load: () => Promise<RunCommand>
}

/** Commands with the same first word. */
export type CommandGroup = { name: string; summary: string; commands: readonly Command[] }

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
