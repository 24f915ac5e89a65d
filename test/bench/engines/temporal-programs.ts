import { join } from 'node:path'
import {
  defaultCacheDir,
  publishFolder,
  findOnPath,
  foundInCache,
  namedByEnvironment,
  provision,
  type Way,
} from '../../../src/dev/provision.ts'
import { runTool, withProgress } from '../../../src/dev/guarded-process.ts'

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

function provide(program: Program, say: (line: string) => void): Promise<string> {
  const { env } = process
  const cacheDir = defaultCacheDir(env)
  const folder = join(cacheDir, `temporal-${program.name}-${SERVER_VERSION}`)
  return provision({
    what: program.what,
    ways: [
      namedByEnvironment(program.variable, env),
      foundInCache([join(folder, program.name)]),
      builtWithGo(program, folder, say),
    ],
    waysOut: [`set ${program.variable}=/path/to/it`, 'install Go; it is then built here'],
  })
}

function builtWithGo(program: Program, folder: string, say: (line: string) => void): Way {
  return {
    name: `go install ${program.package}@v${SERVER_VERSION}`,
    attempt: async () => {
      const go = findOnPath('go', process.env)
      if (go === null) return { why: 'no `go` on PATH' }
      say(`Building ${program.what} with Go (once, ${program.minutes}) …`)
      let compiled = 0
      const describe = (seconds: number): string => `${compiled} packages compiled after ${seconds} s …`
      const path = await publishFolder(folder, program.name, async (draft) => {
        const tool = {
          command: 'nice',
          args: ['-n', '19', go, 'install', '-v', `${program.package}@v${SERVER_VERSION}`],
          env: { ...process.env, GOBIN: draft },
          timeoutMs: BUILD_TIMEOUT_MS,
          onLine: (line: string): void => {
            // -v prints one line per compiled package; go's own remarks are about downloads.
            if (!line.startsWith('go: ')) compiled += 1
          },
        }
        await withProgress(say, describe, () => runTool(tool))
      })
      return { path }
    },
  }
}
