import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'

// An npm that notes that it ran and leaves what `npm ci` leaves.
const fakeNpm = `
const { appendFileSync, mkdirSync, copyFileSync } = require('node:fs')
appendFileSync('npm-runs', process.argv.slice(2).join(' ') + '\\n')
if (process.env.NPM_FAILS) process.exit(1)
mkdirSync('node_modules', { recursive: true })
copyFileSync('package-lock.json', 'node_modules/.package-lock.json')
`

describe('install.mjs', () => {
  let clone: string
  beforeEach(() => {
    clone = mkdtempSync(join(tmpdir(), 'posthorn-install-'))
    mkdirSync(join(clone, 'src', 'dev'), { recursive: true })
    cpSync(new URL('../../../src/dev/install.mjs', import.meta.url), join(clone, 'src/dev/install.mjs'))
    writeFileSync(join(clone, 'npm-cli.js'), fakeNpm)
    lock('1.0.0')
  })
  afterEach(() => rmSync(clone, { recursive: true, force: true }))

  it('installs on a fresh clone and prints that it does', () => {
    const { status, stdout } = install()
    expect(status).to.equal(0)
    expect(stdout).to.include('npm ci')
    expect(hasNpmRun()).to.equal(true)
  })

  it('does nothing the second time', () => {
    install()
    rmSync(join(clone, 'npm-runs'))
    expect(install().stdout).to.equal('')
    expect(hasNpmRun()).to.equal(false)
  })

  it('installs again when the lock file asks for other packages', () => {
    install()
    rmSync(join(clone, 'npm-runs'))
    lock('2.0.0')
    install()
    expect(hasNpmRun()).to.equal(true)
  })

  it('accepts a manual installation', () => {
    mkdirSync(join(clone, 'node_modules'))
    cpSync(join(clone, 'package-lock.json'), join(clone, 'node_modules/.package-lock.json'))
    expect(install().status).to.equal(0)
    expect(hasNpmRun()).to.equal(false)
  })

  it('installs over an installation that was cut short', () => {
    mkdirSync(join(clone, 'node_modules', 'koa'), { recursive: true })
    install()
    expect(hasNpmRun()).to.equal(true)
  })

  it('fails with exit code 1 when npm fails, and tries again the next time', () => {
    const { status, stderr } = install({ NPM_FAILS: '1' })
    expect(status).to.equal(1)
    expect(stderr).to.include('`npm ci` failed')
    expect(install().status).to.equal(0)
  })

  function lock(version: string): void {
    const packages = {
      '': {},
      'node_modules/koa': { version },
      'node_modules/other-os': { version, optional: true },
    }
    writeFileSync(join(clone, 'package-lock.json'), JSON.stringify({ packages }))
  }

  function install(env: NodeJS.ProcessEnv = {}): { status: number | null; stdout: string; stderr: string } {
    const npm = { npm_execpath: join(clone, 'npm-cli.js') }
    const file = join(clone, 'src/dev/install.mjs')
    return spawnSync(process.execPath, [file], { env: { ...process.env, ...npm, ...env }, encoding: 'utf8' })
  }

  function hasNpmRun(): boolean {
    return existsSync(join(clone, 'npm-runs'))
  }
})
