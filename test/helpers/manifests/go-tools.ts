import { createHash } from 'node:crypto'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildWithGo, type GoBuild, defaultCacheDir, isExecutable } from '../../../src/dev/provision.ts'

const HELM_VERSION = '3.19.5'
const PROMETHEUS_VERSION = '0.316.0'
const ACTIONLINT_VERSION = '1.7.12'
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

type GoTool = Pick<GoBuild, 'executable' | 'folder' | 'args' | 'prepare'>

/** Path of `helm`, built once into the cache folder; null, with a line that says why, without Go or modules. */
export function provideHelm(): Promise<string | null> {
  return build({
    executable: 'helm',
    folder: `helm-${HELM_VERSION}`,
    args: [`helm.sh/helm/v3/cmd/helm@v${HELM_VERSION}`],
  })
}

/** Path of Prometheus' `promtool`, built once into the cache folder; null, as for Helm. */
export function providePromtool(): Promise<string | null> {
  return build({
    executable: 'promtool',
    folder: `promtool-${PROMETHEUS_VERSION}`,
    // Without the SDKs of all clouds.
    args: [
      ...['-tags', 'remove_all_sd'],
      `github.com/prometheus/prometheus/cmd/promtool@v${PROMETHEUS_VERSION}`,
    ],
  })
}

/** Path of `actionlint`, which checks GitHub workflows; null, as for Helm. */
export function provideActionlint(): Promise<string | null> {
  return build({
    executable: 'actionlint',
    folder: `actionlint-${ACTIONLINT_VERSION}`,
    args: [`github.com/rhysd/actionlint/cmd/actionlint@v${ACTIONLINT_VERSION}`],
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
  return build({ executable: name, folder, args: [`./${name}`], prepare: () => Promise.resolve(READERS) })
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
    args: ['./kubernetes'],
    async prepare(draft, runGo) {
      const module = join(draft, 'module')
      cpSync(join(READERS, 'kubernetes'), join(module, 'kubernetes'), { recursive: true })
      writeFileSync(join(module, 'go.mod'), 'module posthorn/reader\n\ngo 1.21\n')
      await runGo(['get', ...requires], module)
      return module
    },
  })
}

async function build({ folder, ...tool }: GoTool): Promise<string | null> {
  const target = join(defaultCacheDir(process.env), folder)
  const cached = join(target, tool.executable)
  if (isExecutable(cached)) return cached
  const what = tool.executable
  try {
    const takes = 'some minutes'
    const outcome = await buildWithGo({
      ...{ what, takes, folder: target, timeoutMs: BUILD_TIMEOUT_MS, print },
      ...tool,
    })
    return 'path' in outcome ? outcome.path : skip(`${what} is built with Go: ${outcome.why}`)
  } catch (error) {
    if (!OUT_OF_REACH.test(String(error))) throw error
    return skip(`${what} could not be had in time: ${String(error)}`)
  }
}

function skip(why: string): null {
  print(`!!! SKIPPED, NOTHING WAS PROVED: ${why}`)
  return null
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
