import type { Arguments, Output } from '../command-line/command.ts'
import { diagnose } from './diagnose.ts'
import { renderJson, renderText } from './render.ts'

/** `posthorn doctor`. Ends the process itself. */
export async function runDoctor({ given }: Arguments, { print }: Output): Promise<never> {
  const diagnosis = await diagnose(process.env)
  print(given.has('json') ? renderJson(diagnosis) : renderText(diagnosis))
  // The search for a host's address may go on for longer than its check.
  process.exit(diagnosis.status === 'error' ? 1 : 0)
}
