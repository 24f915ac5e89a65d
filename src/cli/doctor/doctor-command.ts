import type { Environment } from '../../config/load.ts'
import { readOptions } from '../read-options.ts'
import { UsageError } from '../usage-error.ts'
import { diagnose } from './diagnose.ts'
import { renderJson, renderText } from './render.ts'

const OPTIONS = ['json'] as const

const DOCTOR_USAGE = [
  'Usage: posthorn doctor [--json]',
  '',
  'Examines the settings, the database, Temporal, the keys, the outbound policy, mail, push, the deliveries, incidents,',
  'retry jobs and erasures, with the settings of the environment. Prints one line for each finding, with its cure.',
  'Changes nothing and sends nothing.',
  '',
  '  --json  print one JSON document',
  '',
  'Exit code: 0 without an error, 1 with one, 2 when it is called wrongly. docs/troubleshooting.md has the codes.',
].join('\n')

/** `posthorn doctor`. Returns the exit code; throws UsageError naming every problem of the call. */
export async function runDoctorCommand(
  args: readonly string[],
  { env, print }: { env: Environment; print: (text: string) => void },
): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    print(DOCTOR_USAGE)
    return 0
  }
  const { given, problems } = readOptions({ after: 'doctor', options: OPTIONS, flags: OPTIONS }, args)
  if (problems.length > 0) throw new UsageError('doctor', problems)
  const diagnosis = await diagnose(env)
  print(given.has('json') ? renderJson(diagnosis) : renderText(diagnosis))
  return diagnosis.status === 'error' ? 1 : 0
}
