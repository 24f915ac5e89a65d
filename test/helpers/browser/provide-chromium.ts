import { createRequire } from 'node:module'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import {
  findOnPath,
  isExecutable,
  namedByEnvironment,
  provision,
  type Way,
} from '../../../src/dev/provision.ts'
import { runTool } from '../../../src/dev/guarded-process.ts'

/** What distributions and vendors call it. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

const NAMED_BY = 'POSTHORN_TEST_CHROMIUM'
const START_TIMEOUT_MS = 20_000
const DOWNLOAD_TIMEOUT_MS = 300_000

type Options = { env: NodeJS.ProcessEnv; print: (line: string) => void }

/**
 * Returns the path of a Chromium: the one that `POSTHORN_TEST_CHROMIUM` names, one on PATH, or the one that Playwright
 * downloads. Null, with what was tried, where there is none.
 *
 * @throws Error when `POSTHORN_TEST_CHROMIUM` names no program
 */
export async function provideChromium({ env, print }: Options): Promise<string | null> {
  try {
    return await provision({
      what: 'Chromium',
      ways: [namedByEnvironment(NAMED_BY, env), onPath(env), downloadedByPlaywright({ env, print })],
      waysOut: [`set ${NAMED_BY}=/path/to/chromium`, 'apt-get install chromium'],
    })
  } catch (error) {
    if ((env[NAMED_BY] ?? '') !== '') throw error
    print((error as Error).message)
    return null
  }
}

function onPath(env: NodeJS.ProcessEnv): Way {
  return {
    name: 'PATH',
    attempt: () => {
      const path = NAMES.map((name) => findOnPath(name, env)).find((found) => found !== null)
      return Promise.resolve(path === undefined ? { why: `none of ${NAMES.join(', ')}` } : { path })
    },
  }
}

function downloadedByPlaywright({ env, print }: Options): Way {
  return {
    name: 'npx playwright-core install chromium',
    async attempt() {
      const path = chromium.executablePath()
      if (!isExecutable(path)) {
        print('Getting Chromium from Playwright (once, about 170 MB) …')
        const cli = join(createRequire(import.meta.url).resolve('playwright-core/package.json'), '../cli.js')
        const args = [cli, 'install', '--no-shell', 'chromium']
        await runTool({ command: process.execPath, args, env, timeoutMs: DOWNLOAD_TIMEOUT_MS })
      }
      // It comes without the libraries that it needs from the system.
      await runTool({ command: path, args: ['--version'], env, timeoutMs: START_TIMEOUT_MS })
      return { path }
    },
  }
}
