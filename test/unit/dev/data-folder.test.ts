import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { prepareDataFolder } from '../../../src/dev/data-folder.ts'

/** PostgreSQL of root runs as another user, who has to pass through. */
const DATA_FOLDER_MODE = process.getuid?.() === 0 ? '711' : '700'

describe('the data folder of npm start', () => {
  let home: string
  let dataDir: string
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'posthorn-data-'))
    dataDir = join(home, 'data')
  })
  afterEach(() => rmSync(home, { recursive: true, force: true }))

  const modeOf = (path: string): string => (statSync(join(dataDir, path)).mode & 0o777).toString(8)
  const write = (path: string, mode = 0o644): void => {
    const file = join(dataDir, path)
    mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
    writeFileSync(file, 'x')
    chmodSync(file, mode)
  }

  it('is made for its owner only', () => {
    prepareDataFolder(dataDir)
    expect([modeOf('.'), modeOf('logs')]).to.deep.equal([DATA_FOLDER_MODE, '700'])
  })

  it('loses the rights of other users at the next start, but for the part of PostgreSQL', () => {
    for (const file of ['temporal.db', 'logs/posthorn.log', 'mails/000000000001.json']) write(file)
    write('postgres/password', 0o640)
    chmodSync(dataDir, 0o755)
    const outside = join(home, 'outside')
    writeFileSync(outside, 'x')
    chmodSync(outside, 0o644)
    symlinkSync(outside, join(dataDir, 'link'))
    prepareDataFolder(dataDir)
    expect(['.', 'logs', 'mails'].map(modeOf)).to.deep.equal([DATA_FOLDER_MODE, '700', '700'])
    expect(['temporal.db', 'logs/posthorn.log', 'mails/000000000001.json'].map(modeOf)).to.deep.equal(
      Array(3).fill('600'),
    )
    expect([modeOf('postgres/password'), modeOf('link')]).to.deep.equal(['640', '644'])
  })

  it('is refused in words where it cannot be used', () => {
    const file = join(home, 'file')
    writeFileSync(file, '')
    expect(() => prepareDataFolder(join(file, 'data'))).to.throw(/cannot be used \(\w+\)\. Set POSTHORN_DATA/)
  })
})
