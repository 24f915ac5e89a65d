import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runTool } from '../../../src/dev/guarded-process.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const RUN_TIMEOUT_MS = 300_000

/** What an image is started with, as its last stage says. `root` has its files; programs of the base are this machine's. */
export type Image = {
  root: string
  workdir: string
  user: string
  env: Record<string, string>
  command: string[]
}

type Stage = Omit<Image, 'command'> & { entrypoint: string[]; cmd: string[] }

/**
 * Carries out the Dockerfile of this repository in folders below `folder`, stage by stage, and returns the last one.
 * A base image is an empty folder, and Debian packages are not installed.
 *
 * @throws Error for an instruction that it does not know, and for a source that .dockerignore keeps out
 */
export async function buildImage(folder: string): Promise<Image> {
  const allowed = readFileSync(join(ROOT, '.dockerignore'), 'utf8').split('\n')
  const stages: Stage[] = []
  const byName = new Map<string, Stage>()
  for (const { keyword, rest } of instructions(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))) {
    if (keyword === 'ARG' || keyword === 'EXPOSE') continue
    if (keyword === 'FROM') {
      const root = join(folder, `stage-${stages.length}`)
      mkdirSync(root, { mode: 0o755 })
      const stage = { root, workdir: '/', user: 'root', env: {}, entrypoint: [], cmd: [] }
      stages.push(stage)
      const [, name = ''] = / AS (\w+)$/.exec(rest) ?? []
      byName.set(name, stage)
      continue
    }
    const stage = stages.at(-1)
    if (stage === undefined) throw new Error('the Dockerfile does not begin with FROM')
    switch (keyword) {
      case 'WORKDIR':
        stage.workdir = rest
        mkdirSync(join(stage.root, rest), { recursive: true })
        break
      case 'COPY':
        copy(rest, stage, { byName, allowed })
        break
      case 'RUN':
        if (rest.startsWith('apt-get ')) break
        await runTool({
          command: 'sh',
          args: ['-c', rest],
          cwd: join(stage.root, stage.workdir),
          timeoutMs: RUN_TIMEOUT_MS,
        })
        break
      case 'ENV': {
        const [name = '', value = ''] = rest.split('=')
        stage.env[name] = value
        break
      }
      case 'USER':
        stage.user = rest
        break
      case 'ENTRYPOINT':
        stage.entrypoint = JSON.parse(rest) as string[]
        break
      case 'CMD':
        stage.cmd = JSON.parse(rest) as string[]
        break
      default:
        throw new Error(`unknown instruction ${keyword}`)
    }
  }
  const last = stages.at(-1)
  if (last === undefined) throw new Error('the Dockerfile has no stage')
  const { entrypoint, cmd, ...image } = last
  return { ...image, command: [...entrypoint, ...cmd] }
}

function instructions(dockerfile: string): { keyword: string; rest: string }[] {
  return dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const space = line.indexOf(' ')
      return { keyword: line.slice(0, space), rest: line.slice(space + 1).trim() }
    })
}

type Sources = { byName: ReadonlyMap<string, Stage>; allowed: readonly string[] }

function copy(rest: string, stage: Stage, { byName, allowed }: Sources): void {
  const [, from, paths = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(rest) ?? []
  const origin = from === undefined ? ROOT : byName.get(from)?.root
  if (origin === undefined) throw new Error(`no stage ${from}`)
  const sources = paths.split(' ')
  const destination = sources.pop() ?? ''
  const target = join(stage.root, resolve(stage.workdir, destination))
  for (const source of sources) {
    if (from === undefined && !allowed.some((one) => `!${source}/`.startsWith(`${one}/`)))
      throw new Error(`.dockerignore keeps out ${source}`)
    const path = join(origin, source)
    const isInto = destination.endsWith('/') && statSync(path).isFile()
    const to = isInto ? join(target, basename(source)) : target
    if (existsSync(to) && statSync(path).isDirectory()) execFileSync('cp', ['-a', `${path}/.`, to])
    else cpSync(path, to, { recursive: true, verbatimSymlinks: true })
  }
}
