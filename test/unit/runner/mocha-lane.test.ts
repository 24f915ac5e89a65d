import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { startLane, sumOf } from '../../helpers/runner/mocha-lane.ts'
import type { TestServers } from '../../helpers/runner/servers.ts'

/** Handed on to the tests of a lane; these need none. */
const NO_SERVERS: TestServers = {
  adminUrl: '',
  templateDatabase: '',
  temporalAddress: '',
  temporalCli: '',
  timeSkippingServer: '',
  posthorn: '',
}

describe('the lanes of the tests', function () {
  this.timeout(60_000)
  let folder: string
  let told: string[]

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-lanes-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))
  beforeEach(() => {
    told = []
  })

  const lane = (name: string, test: string) => {
    const file = join(folder, `${name}.test.cjs`)
    writeFileSync(file, test)
    const say = (chunk: Buffer): void => void told.push(chunk.toString())
    return startLane({ args: [file], servers: NO_SERVERS, folder, name, out: say, err: say })
  }
  const passing = (title: string, afterMs = 0): string =>
    `it('${title}', (done) => void setTimeout(done, ${afterMs}))`

  it('are counted together, and show what they say one after the other', async () => {
    const lanes = [
      lane('slow', passing('first', 300)),
      lane('fast', `${passing('second')}; it('fails', () => { throw new Error('the reason') })`),
    ]
    const failed = ['fails: the reason']
    expect(await sumOf(lanes)).to.deep.equal({ passes: 2, failures: 1, pending: 0, failed })
    const text = told.join('')
    expect(text).to.match(/first[^]*1 passing[^]*second[^]*1 passing[^]*1 failing/)
  })

  it('have a failure where one dies, or ends badly after its last test', async () => {
    const dying = `${passing('last words')}; it('dies', () => process.kill(process.pid, 'SIGKILL'))`
    const dead = lane('dead', dying)
    const quiet = lane('quiet', `${passing('fine')}; process.on('exit', () => process.exit(3))`)
    const failed = ['a mocha process ended with a signal', 'a mocha process ended with exit code 3']
    expect(await sumOf([dead, quiet])).to.deep.equal({ passes: 1, failures: 2, pending: 0, failed })
    expect(told.join('')).to.include('last words')
  })
})
