import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import packageJson from '../../../package.json' with { type: 'json' }
import { builtInCatalogue } from '../../catalogue/built-in-catalogue.ts'
import { openApiDocument } from '../../http/openapi.ts'
import { routes } from '../../http/routes/index.ts'
import { runTool } from '../guarded-process.ts'
import {
  buildListenPackage,
  buildServerPackage,
  packFolder,
  releaseNotes,
  runtimePackages,
  writeJson,
  type LockFile,
} from './packages.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const TOOL_TIMEOUT_MS = 120_000

const INSTALLATION = `
## Installation

\`\`\`sh
sha256sum --check SHA256SUMS
npm install ./posthorn-${packageJson.version}.tgz && npx posthorn --help
npm install --global ./posthorn-listen-${packageJson.version}.tgz && posthorn-listen --help
helm install posthorn ./posthorn-chart-${packageJson.version}.tgz --values values.yaml
\`\`\`
`

type Component = { name: string; version: string; licenses?: object[] }
type Sbom = {
  serialNumber?: string
  metadata: { timestamp?: string }
  components: Component[]
}

/**
 * `npm run release`: makes all that a release consists of, in release/ or the folder of its argument: both npm packages,
 * the Helm chart, the OpenAPI document, the SBOM (CycloneDX), the licences, notes and checksums, which it prints. The same
 * sources give the same bytes. Needs npm, GNU tar and sha256sum, and no network. What was in release/ is gone; any other
 * folder has to be empty.
 */
const [given] = process.argv.slice(2)
const folder = given === undefined ? join(ROOT, 'release') : resolve(given)
if (given === undefined) rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`)
const draft = mkdtempSync(join(tmpdir(), 'posthorn-release-'))
try {
  const [server, listen] = [join(draft, 'posthorn'), join(draft, 'posthorn-listen')]
  await buildServerPackage(server)
  await packFolder(server, folder)
  await buildListenPackage(listen)
  await packFolder(listen, folder)
  await packChart(join(folder, `posthorn-chart-${packageJson.version}.tgz`))
  const lock = JSON.parse(readFileSync(join(server, 'npm-shrinkwrap.json'), 'utf8')) as LockFile
  writeJson(join(folder, 'sbom.cdx.json'), await makeSbom(server, lock))
  writeFileSync(join(folder, 'licences.txt'), licenceList(lock))
  writeJson(join(folder, 'openapi.json'), openApiDocument(routes, builtInCatalogue))
  const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
  writeFileSync(join(folder, 'NOTES.md'), `${releaseNotes(changelog)}${INSTALLATION}`)
  const checksums = `${await checksumsOf(folder)}\n`
  writeFileSync(join(folder, 'SHA256SUMS'), checksums)
  process.stdout.write(`In ${folder}:\n${checksums}`)
} finally {
  rmSync(draft, { recursive: true, force: true })
}

async function packChart(file: string): Promise<void> {
  const sameOwner = [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
  ]
  const args = [...sameOwner, '--use-compress-program=gzip -n', '-cf', file, '-C', 'deploy/helm', 'posthorn']
  await runTool({ command: 'tar', args, cwd: ROOT, timeoutMs: TOOL_TIMEOUT_MS })
}

/**
 * Returns npm's SBOM of the packages that run in production. It is made from the package that is released, since
 * `npm sbom --omit=dev` also leaves out what a package for development needs too.
 */
async function makeSbom(server: string, lock: LockFile): Promise<Sbom> {
  const file = join(server, '..', 'sbom.json')
  await runTool({
    command: 'sh',
    args: ['-c', 'npm sbom --sbom-format=cyclonedx --sbom-type=application --package-lock-only >"$0"', file],
    cwd: server,
    timeoutMs: TOOL_TIMEOUT_MS,
  })
  const sbom = JSON.parse(readFileSync(file, 'utf8')) as Sbom
  // Both differ each time.
  delete sbom.serialNumber
  delete sbom.metadata.timestamp
  const licences = new Map(runtimePackages(lock).map(({ name, licence }) => [name, licence]))
  const components = sbom.components.map(({ licenses, ...component }) => ({
    ...component,
    licenses: licenses ?? [{ license: { id: licences.get(component.name) } }],
  }))
  return { ...sbom, components }
}

function licenceList(lock: LockFile): string {
  const packages = runtimePackages(lock)
  const scripts = packages.filter(({ hasInstallScript }) => hasInstallScript)
  return [
    `Packages that posthorn ${packageJson.version} installs, with their licences:`,
    ...packages.map(({ name, version, licence }) => `${name} ${version}: ${licence}`),
    '',
    `With an install script: ${scripts.map(({ name, version }) => `${name} ${version}`).join(', ')}`,
    '',
  ].join('\n')
}

/** Returns a line for each file, as `sha256sum --check` reads it. */
function checksumsOf(folder: string): Promise<string> {
  const env = { ...process.env, LC_ALL: 'C' }
  const args = ['-c', 'sha256sum -- *']
  return runTool({ command: 'sh', args, env, cwd: folder, timeoutMs: TOOL_TIMEOUT_MS })
}
