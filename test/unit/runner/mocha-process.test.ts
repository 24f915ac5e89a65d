import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { startMocha, sumCounts } from '../../helpers/runner/mocha-process.ts'
import type { TestServers } from '../../helpers/runner/servers.ts'

/** Passed on to the tests, which need none here. */
const NO_SERVERS: TestServers = {
  adminUrl: '',
  templateDatabase: '',
  temporalAddress: '',
  temporalCli: '',
  timeSkippingServer: '',
  chromium: null,
  posthorn: '',
}

describe('the mocha processes of a test run', () => {
  let folder: string
  let output: string[]

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-mocha-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))
  beforeEach(() => {
    output = []
  })

  const start = (name: string, test: string) => {
    const file = join(folder, `${name}.test.cjs`)
    writeFileSync(file, test)
    const collect = (chunk: Buffer): void => void output.push(chunk.toString())
    return startMocha({
      args: [file],
      servers: NO_SERVERS,
      folder,
      name,
      exitTimeoutMs: 2_000,
      out: collect,
      err: collect,
    })
  }
  const passing = (title: string, afterMs = 0): string =>
    `it('${title}', (done) => void setTimeout(done, ${afterMs}))`

  it('are counted together and show their output one after the other', async () => {
    const processes = [
      start('slow', passing('first', 300)),
      start('fast', `${passing('second')}; it('fails', () => { throw new Error('the reason') })`),
      start('partial', `it.skip('third'); it('fourth', function () { this.skip() })`),
    ]
    const failed = ['fails: the reason']
    const skipped = ['third', 'fourth']
    expect(await sumCounts(processes)).to.deep.equal({ passes: 2, failures: 1, failed, skipped })
    const text = output.join('')
    expect(text).to.match(/first[^]*1 passing[^]*second[^]*1 passing[^]*1 failing/)
  })

  it('keep what tests leave behind in the folder of the run', async () => {
    const leaving = `require('node:fs').mkdtempSync(require('node:os').tmpdir() + '/left-')`
    await sumCounts([start('leaving', passing('first') + ';' + leaving)])
    expect(readdirSync(folder).filter((name) => name.startsWith('left-'))).to.have.length(1)
  })

  it('count a failure for a process that dies or exits badly after its last test', async () => {
    const dying = `${passing('last words')}; it('dies', () => process.kill(process.pid, 'SIGKILL'))`
    const dead = start('dead', dying)
    const quiet = start('quiet', `${passing('fine')}; process.on('exit', () => process.exit(3))`)
    const failed = ['a mocha process ended with a signal', 'a mocha process ended with exit code 3']
    expect(await sumCounts([dead, quiet])).to.deep.equal({ passes: 1, failures: 2, failed, skipped: [] })
    expect(output.join('')).to.include('last words')
  })

  it('count a failure for a process that a test keeps alive, and name what it left open', async () => {
    const leaking = start('leaking', `it('leaks', () => void setInterval(() => undefined, 1_000))`)
    const failed = ['a mocha process ended with exit code 1']
    expect(await sumCounts([leaking])).to.deep.equal({ passes: 1, failures: 1, failed, skipped: [] })
    expect(output.join('')).to.include('LEFT OPEN by a test: ').and.include('Timeout')
  })
})
