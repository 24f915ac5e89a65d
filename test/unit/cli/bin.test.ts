import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const BUILT_AT = new Date('2026-01-01T12:00:00Z')
const BEFORE_BUILD = new Date('2026-01-01T11:00:00Z')
const AFTER_BUILD = new Date('2026-01-01T13:00:00Z')

describe('bin.mjs', () => {
  let checkout: string
  beforeEach(() => {
    checkout = mkdtempSync(join(tmpdir(), 'posthorn-bin-'))
    mkdirSync(join(checkout, 'src/cli'), { recursive: true })
    cpSync(join(ROOT, 'src/cli/bin.mjs'), join(checkout, 'src/cli/bin.mjs'))
    utimesSync(join(checkout, 'src/cli/bin.mjs'), BEFORE_BUILD, BEFORE_BUILD)
    symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'))
    writeFileSync(join(checkout, 'package.json'), '{ "type": "module" }')
    cpSync(join(ROOT, 'tsconfig.json'), join(checkout, 'tsconfig.json'))
  })
  afterEach(() => rmSync(checkout, { recursive: true, force: true }))

  it('runs the sources where there is no build', () => {
    writeSources(BEFORE_BUILD)
    expect(run()).to.deep.equal({ status: 0, stdout: 'sources', stderr: '' })
  })

  it('runs the sources with their own compiler options, whatever the current folder is', () => {
    writeSources(BEFORE_BUILD)
    const source = `function property(_: object, name: string) { process.stdout.write(name) }
      export class Row { @property id = 1 }`
    write('src/cli/posthorn.ts', source, BEFORE_BUILD)
    for (const folder of [checkout, tmpdir()])
      expect(run(folder), folder).to.deep.equal({ status: 0, stdout: 'id', stderr: '' })
  })

  it('installs the packages of a clone first that has none', () => {
    writeSources(BEFORE_BUILD)
    rmSync(join(checkout, 'node_modules'))
    const [from, to] = [join(ROOT, 'node_modules'), join(checkout, 'node_modules')]
    const install = `import { symlinkSync } from 'node:fs'
      symlinkSync(${JSON.stringify(from)}, ${JSON.stringify(to)})`
    write('src/dev/install.mjs', install, BEFORE_BUILD)
    expect(run()).to.deep.equal({ status: 0, stdout: 'sources', stderr: '' })
  })

  it('runs a build that is newer than the sources', () => {
    writeSources(BEFORE_BUILD)
    build()
    expect(run()).to.deep.equal({ status: 0, stdout: 'build', stderr: '' })
  })

  it('runs a build without sources', () => {
    build()
    expect(run()).to.deep.equal({ status: 0, stdout: 'build', stderr: '' })
  })

  for (const changed of ['src/cli/posthorn.ts', 'workflows/index.ts', 'activities/index.ts']) {
    it(`refuses a build that is older than ${changed}`, () => {
      writeSources(BEFORE_BUILD)
      build()
      utimesSync(join(checkout, changed), AFTER_BUILD, AFTER_BUILD)
      const { status, stdout, stderr } = run()
      expect({ status, stdout }).to.deep.equal({ status: 1, stdout: '' })
      expect(stderr).to.include(changed).and.include('npm run build')
    })
  }

  function writeSources(changedAt: Date): void {
    write('src/cli/posthorn.ts', "process.stdout.write('sources' satisfies string)", changedAt)
    write('workflows/index.ts', '', changedAt)
    write('activities/index.ts', '', changedAt)
  }

  function build(): void {
    write('dist/src/cli/posthorn.js', "process.stdout.write('build')", BUILT_AT)
  }

  function write(path: string, content: string, changedAt: Date): void {
    const file = join(checkout, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content)
    utimesSync(file, changedAt, changedAt)
  }

  function run(cwd = process.cwd()) {
    const { PATH = '', HOME = '' } = process.env
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(checkout, 'src/cli/bin.mjs')], {
      cwd,
      encoding: 'utf8',
      env: { PATH, HOME },
    })
    return { status, stdout, stderr }
  }
})
