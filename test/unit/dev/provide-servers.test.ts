import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import type { RunTool, Tool } from '../../../src/dev/guarded-process.ts'
import { provideTemporalCli } from '../../../src/dev/temporal-dev-server.ts'
import { provideTimeSkippingServer } from '../../helpers/runner/time-skipping-server.ts'

let folder: string
let cacheDir: string

describe('providing a server', () => {
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-provide-'))
    cacheDir = join(folder, 'cache')
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  describe('provideTemporalCli', () => {
    it('takes the executable that TEMPORAL_CLI names before anything else', async () => {
      const named = program('named/temporal')
      program('cache/temporal-cli-1.5.1/temporal')
      expect(await cli({ TEMPORAL_CLI: named }, refuse)).to.equal(named)
    })

    it('refuses a TEMPORAL_CLI that is no executable instead of taking another', async () => {
      program('cache/temporal-cli-1.5.1/temporal')
      const message = await failure(cli({ TEMPORAL_CLI: '/nowhere/temporal' }, refuse))
      expect(message).to.include('TEMPORAL_CLI: /nowhere/temporal is not an executable file')
    })

    it('takes `temporal` from PATH', async () => {
      const onPath = program('bin/temporal')
      const run: RunTool = () => Promise.resolve('temporal version 1.5.1 (Server 1.29.1)')
      expect(await cli({ PATH: dirname(onPath) }, run)).to.equal(onPath)
    })

    it('passes over another program of that name on PATH', async () => {
      const cached = program('cache/temporal-cli-1.5.1/temporal')
      const onPath = program('bin/temporal')
      expect(await cli({ PATH: dirname(onPath) }, () => Promise.resolve('a calendar 2.0'))).to.equal(cached)
    })

    it("keeps the SDK's download, and downloads once", async () => {
      const calls: Tool[] = []
      const run = download(calls)
      const first = await cli({}, run)
      expect(await cli({}, run)).to.equal(first)
      expect(first.startsWith(cacheDir)).to.equal(true)
      expect(calls).to.have.length(1)
    })

    it('builds with Go where the download is refused', async () => {
      const go = program('bin/go')
      const run: RunTool = (tool) => {
        if (tool.command !== go) return Promise.reject(new Error('connection refused'))
        if (tool.args[0] === 'version') return Promise.resolve('go version go1.26.8 linux/amd64')
        expect(tool.args).to.include('install')
        program(join(tool.env?.['GOBIN'] ?? '', 'temporal'))
        return Promise.resolve('')
      }
      const path = await cli({ PATH: dirname(go) }, run)
      expect(path).to.equal(join(cacheDir, 'temporal-cli-1.5.1', 'temporal'))
    })

    it('names all five ways and all four workarounds when every way fails', async () => {
      const go = program('bin/go')
      const run: RunTool = ({ command }) =>
        command === go
          ? Promise.resolve('go version go1.19.8 linux/amd64')
          : Promise.reject(new Error('refused'))
      const message = await failure(cli({ PATH: dirname(go) }, run))
      const named = [
        'TEMPORAL_CLI: not set',
        '`temporal` on PATH: not found',
        'the cache:',
        "SDK's download: refused",
      ]
      const waysOut = [
        'set TEMPORAL_CLI=',
        'set TEMPORAL_ADDRESS=host:port',
        'on PATH',
        'install Go 1.21 or newer',
      ]
      for (const part of [...named, 'needs Go 1.21 or newer, found go version go1.19.8', ...waysOut]) {
        expect(message).to.include(part)
      }
      expect(readdirSync(cacheDir)).to.deep.equal([])
    })
  })

  describe('provideTimeSkippingServer', () => {
    it('takes the executable that TEMPORAL_TEST_SERVER names', async () => {
      const named = program('named/server')
      expect(await testServer({ TEMPORAL_TEST_SERVER: named }, refuse)).to.equal(named)
    })

    it('assembles it with Maven where the download is refused, and keeps it', async () => {
      const env = { PATH: dirname(program('bin/mvn')) }
      program('bin/java')
      const run: RunTool = ({ command }) => {
        if (command.endsWith('java')) return Promise.resolve('openjdk version "17.0.15" 2025-04-15')
        return command.endsWith('mvn') ? Promise.resolve('') : Promise.reject(new Error('refused'))
      }
      const path = await testServer(env, run)
      expect(path).to.equal(join(cacheDir, 'temporal-test-server-1.38.0', 'temporal-test-server'))
      expect(await testServer(env, refuse)).to.equal(path)
    })

    it('names the Java version when it is too old', async () => {
      const env = { PATH: dirname(program('bin/mvn')) }
      program('bin/java')
      const run: RunTool = ({ command }) =>
        command.endsWith('java')
          ? Promise.resolve('openjdk version "1.8.0_292"\nmore')
          : Promise.reject(new Error('refused'))
      const message = await failure(testServer(env, run))
      expect(message).to.include('needs Java 17 or newer, found openjdk version "1.8.0_292"\n')
      expect(message).to.include('set TEMPORAL_TEST_SERVER=')
    })
  })
})

const refuse: RunTool = () => Promise.reject(new Error('refused'))

/** As the SDK does: one file in the folder given last, under a name of its own. */
function download(calls: Tool[]): RunTool {
  return (tool) => {
    calls.push(tool)
    writeFileSync(join(tool.args.at(-1) ?? '', 'temporal-sdk-typescript-1'), '#!/bin/sh\n')
    return Promise.resolve('')
  }
}

async function cli(env: NodeJS.ProcessEnv, run: RunTool): Promise<string> {
  return provideTemporalCli({ env, cacheDir, print: () => undefined, run })
}

async function testServer(env: NodeJS.ProcessEnv, run: RunTool): Promise<string> {
  return provideTimeSkippingServer({ env, cacheDir, print: () => undefined, run })
}

function program(name: string): string {
  const file = name.startsWith('/') ? name : join(folder, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, '#!/bin/sh\n')
  chmodSync(file, 0o755)
  return file
}

async function failure(result: Promise<string>): Promise<string> {
  return result.then(
    (path) => expect.fail(`got ${path}`),
    (error: unknown) => (error as Error).message,
  )
}
