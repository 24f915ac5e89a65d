import { createHash } from 'node:crypto'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defaultCacheDir, publishFolder, findOnPath, isExecutable } from '../../../src/dev/provision.ts'
import { runTool, withProgress } from '../../../src/dev/guarded-process.ts'

const HELM_VERSION = '3.19.5'
const PROMETHEUS_VERSION = '0.316.0'
const ACTIONLINT_VERSION = '1.7.12'
// An older Go cannot fetch the Go that a module names.
const OLDEST_GO_MINOR = 21
const QUICK_TIMEOUT_MS = 20_000
// Cold, on a machine that does other work too.
const BUILD_TIMEOUT_MS = 480_000

/** What `go` and `runTool` say when modules cannot be downloaded, or not in time. */
const OUT_OF_REACH =
  /not done after|toolchain|dial tcp|lookup |timeout|connection re|proxyconnect|\b(403|404|50\d) /i

/** How long a test has to wait for a program. */
export const PROVIDE_TIMEOUT_MS = BUILD_TIMEOUT_MS + QUICK_TIMEOUT_MS

/** The Go module of our own programs that read manifests. */
const READERS = fileURLToPath(new URL('../manifest-readers', import.meta.url))

type GoTool = {
  executable: string
  folder: string
  package: string
  cwd?: string
  /** Makes a module of the folder `source` in READERS, which takes these modules. */
  module?: { source: string; requires: string[] }
  tags?: string
}

/** Path of `helm`, built once into the cache folder; null, with a line that says why, without Go or modules. */
export function provideHelm(): Promise<string | null> {
  return build({
    executable: 'helm',
    folder: `helm-${HELM_VERSION}`,
    package: `helm.sh/helm/v3/cmd/helm@v${HELM_VERSION}`,
  })
}

/** Path of Prometheus' `promtool`, built once into the cache folder; null, as for Helm. */
export function providePromtool(): Promise<string | null> {
  return build({
    executable: 'promtool',
    folder: `promtool-${PROMETHEUS_VERSION}`,
    package: `github.com/prometheus/prometheus/cmd/promtool@v${PROMETHEUS_VERSION}`,
    // Without the SDKs of all clouds.
    tags: 'remove_all_sd',
  })
}

/** Path of `actionlint`, which checks GitHub workflows; null, as for Helm. */
export function provideActionlint(): Promise<string | null> {
  return build({
    executable: 'actionlint',
    folder: `actionlint-${ACTIONLINT_VERSION}`,
    package: `github.com/rhysd/actionlint/cmd/actionlint@v${ACTIONLINT_VERSION}`,
  })
}

/**
 * Path of a program that reads `compose` files or `kubernetes` manifests with the libraries of Docker and Kubernetes,
 * built once into the cache folder; null, with a line that says why, without Go or modules.
 */
export function provideReader(name: 'compose' | 'kubernetes'): Promise<string | null> {
  const hash = createHash('sha256')
  for (const file of ['go.mod', 'go.sum', `${name}/main.go`]) hash.update(readFileSync(join(READERS, file)))
  const folder = `${name}-reader-${hash.digest('hex').slice(0, 12)}`
  return build({ executable: name, folder, package: `./${name}`, cwd: READERS })
}

/** Releases of Kubernetes besides that of `provideReader`: the oldest that the chart names, and the newest. */
export const OTHER_KUBERNETES = { '1.27': '0.27.16', '1.37': '0.37.2' }

/** Path of the same program for manifests of another release of Kubernetes; null, as for Helm. */
export function provideOtherReader(release: keyof typeof OTHER_KUBERNETES): Promise<string | null> {
  const version = OTHER_KUBERNETES[release]
  const requires = ['client-go/kubernetes/scheme', 'apimachinery'].map((name) => `k8s.io/${name}@v${version}`)
  const hash = createHash('sha256')
    .update(readFileSync(join(READERS, 'kubernetes/main.go')))
    .digest('hex')
  return build({
    executable: 'kubernetes',
    folder: `kubernetes-reader-${version}-${hash.slice(0, 12)}`,
    package: './kubernetes',
    module: { source: 'kubernetes', requires },
  })
}

async function build({
  executable,
  folder,
  package: source,
  cwd,
  module,
  tags = '',
}: GoTool): Promise<string | null> {
  const { env } = process
  const cacheDir = defaultCacheDir(env)
  const target = join(cacheDir, folder)
  const cached = join(target, executable)
  if (isExecutable(cached)) return cached
  const go = findOnPath('go', env)
  const version =
    go === null ? '' : await runTool({ command: go, args: ['version'], timeoutMs: QUICK_TIMEOUT_MS })
  const minor = Number(/go1\.(\d+)/.exec(version)?.[1] ?? 0)
  if (go === null || minor < OLDEST_GO_MINOR)
    return skip(`${source} is built with Go 1.${OLDEST_GO_MINOR} or newer, and there is none on PATH`)
  let compiled = 0
  const onLine = (line: string): void => {
    // -v prints one line per compiled package; go's own remarks are about downloads.
    if (!line.startsWith('go: ')) compiled += 1
  }
  const describe = (seconds: number): string =>
    `Building ${executable}: ${compiled} packages compiled after ${seconds} s …`
  print(`Building ${executable} with Go (once, some minutes) …`)
  return publishFolder(target, executable, async (draft) => {
    const modulePath = module === undefined ? (cwd ?? cacheDir) : join(draft, 'module')
    const tool = { command: go, cwd: modulePath, env: { ...env, GOBIN: draft }, timeoutMs: BUILD_TIMEOUT_MS }
    await withProgress(print, describe, async () => {
      if (module !== undefined) {
        cpSync(join(READERS, module.source), join(modulePath, module.source), { recursive: true })
        writeFileSync(join(modulePath, 'go.mod'), 'module posthorn/reader\n\ngo 1.21\n')
        await runTool({ ...tool, args: ['get', ...module.requires] })
      }
      await runTool({ ...tool, args: ['install', '-v', '-tags', tags, source], onLine })
    })
  }).catch((error: unknown) => {
    if (!OUT_OF_REACH.test(String(error))) throw error
    return skip(`${source} could not be had in time: ${String(error)}`)
  })
}

function skip(why: string): null {
  print(`!!! SKIPPED, NOTHING WAS PROVED: ${why}`)
  return null
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
