import { join } from 'node:path'
import {
  buildWithGo,
  defaultCacheDir,
  foundInCache,
  namedByEnvironment,
  provision,
} from '../../../src/dev/provision.ts'

/** As in docker-compose.yml. */
const SERVER_VERSION = '1.31.2'
const BUILD_TIMEOUT_MS = 1_800_000

/** The server as it runs in production, and the tool that makes its tables. */
export type TemporalPrograms = { server: string; sqlTool: string }

type Program = { name: string; what: string; variable: string; package: string; minutes: string }

const SERVER: Program = {
  name: 'server',
  what: `the Temporal server ${SERVER_VERSION}`,
  variable: 'TEMPORAL_SERVER',
  package: 'go.temporal.io/server/cmd/server',
  minutes: 'about five minutes',
}

const SQL_TOOL: Program = {
  name: 'sql',
  what: `the schema tool of Temporal ${SERVER_VERSION}`,
  variable: 'TEMPORAL_SQL_TOOL',
  package: 'go.temporal.io/server/cmd/tools/sql',
  minutes: 'about a minute',
}

/** Paths of both: named in the environment, kept from before, or built with Go. Throws an Error naming every way. */
export async function provideTemporalPrograms(say: (line: string) => void): Promise<TemporalPrograms> {
  return { server: await provide(SERVER, say), sqlTool: await provide(SQL_TOOL, say) }
}

function provide(program: Program, print: (line: string) => void): Promise<string> {
  const { what, variable, name: executable, minutes: takes } = program
  const { env } = process
  const folder = join(defaultCacheDir(env), `temporal-${executable}-${SERVER_VERSION}`)
  const source = `${program.package}@v${SERVER_VERSION}`
  const build = { what, takes, folder, executable, args: [source], timeoutMs: BUILD_TIMEOUT_MS, print }
  return provision({
    what,
    ways: [
      namedByEnvironment(variable, env),
      foundInCache([join(folder, executable)]),
      { name: `go install ${source}`, attempt: () => buildWithGo(build) },
    ],
    waysOut: [`set ${variable}=/path/to/it`, 'install Go; it is then built here'],
  })
}
