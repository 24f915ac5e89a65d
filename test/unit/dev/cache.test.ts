import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { defaultCacheDir, publishFolder } from '../../../src/dev/provision.ts'

describe('defaultCacheDir', () => {
  it('prefers POSTHORN_CACHE, then XDG_CACHE_HOME, then the home folder', () => {
    const env = { POSTHORN_CACHE: '/own', XDG_CACHE_HOME: '/xdg', HOME: '/home/an' }
    expect(defaultCacheDir(env)).to.equal('/own')
    expect(defaultCacheDir({ ...env, POSTHORN_CACHE: '' })).to.equal('/xdg/posthorn')
    expect(defaultCacheDir({ HOME: '/home/an' })).to.equal('/home/an/.cache/posthorn')
  })
})

describe('publishFolder', () => {
  let parent: string
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), 'posthorn-cache-'))
  })
  afterEach(() => rmSync(parent, { recursive: true, force: true }))

  it('leaves nothing behind when the build fails', async () => {
    const failing = publishFolder(join(parent, 'tool'), 'run', (draft) => {
      writeFileSync(join(draft, 'half'), '')
      return Promise.reject(new Error('disk full'))
    })
    expect(await failing.catch((error: unknown) => (error as Error).message)).to.equal('disk full')
    expect(readdirSync(parent)).to.deep.equal([])
  })

  it('keeps the complete result of the faster of two builds', async () => {
    const folder = join(parent, 'tool')
    let finishSlow = (): void => undefined
    const slow = publishFolder(folder, 'run', async (draft) => {
      await new Promise<void>((resolve) => (finishSlow = resolve))
      await writeProgram(draft, 'slow')
    })
    const fast = await publishFolder(folder, 'run', (draft) => writeProgram(draft, 'fast'))
    finishSlow()
    expect(await slow).to.equal(fast)
    expect(readFileSync(fast, 'utf8')).to.equal('fast')
    expect(readdirSync(parent)).to.deep.equal(['tool'])
  })

  it('replaces a folder that lacks the executable', async () => {
    const folder = join(parent, 'tool')
    mkdirSync(folder)
    writeFileSync(join(folder, 'junk'), '')
    await publishFolder(folder, 'run', (draft) => writeProgram(draft, 'new'))
    expect(readdirSync(folder)).to.deep.equal(['run'])
  })
})

async function writeProgram(folder: string, content: string): Promise<void> {
  await writeFile(join(folder, 'run'), content, { mode: 0o755 })
}
