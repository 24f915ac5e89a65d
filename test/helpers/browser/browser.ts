import { randomUUID } from 'node:crypto'
import axe, { type AxeResults } from 'axe-core'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { expect } from 'chai'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { operatorKeysText } from '../api/operator.ts'
import type { TestMember } from '../database/factories.ts'
import { startPosthorn, type PosthornProcess } from '../processes/posthorn.ts'
import { testServers } from '../runner/servers.ts'
import { createStage, type Stage } from '../processes/stage.ts'

/** A user's browser; `faults` is what the browser complained of: scripts that failed, policies that were broken. */
type Visitor = { page: Page; faults: string[] }

/** What the tests of one `describe` share; filled before the first of them. */
export type DeveloperArea = {
  readonly stage: Stage
  readonly posthorn: PosthornProcess
  /** A new browser profile at this path of the product, or at another address, without a session. */
  visit(path?: string, options?: BrowserContextOptions): Promise<Visitor>
  /** The same, signed in; the member of the stage where no other is given. */
  signIn(member?: TestMember, options?: BrowserContextOptions & { path?: string }): Promise<Visitor>
}

const TEMPORAL_UI_URL = 'http://127.0.0.1:1/temporal'

/** How long a test waits for the page, on a machine as busy as may be. */
const PAGE_TIMEOUT_MS = 60_000

/** Started once for all files: what takes long is the start. */
type Running = { database: TestDatabase; posthorn: PosthornProcess; browser: Browser }
let started: Promise<Running> | undefined

async function start(executablePath: string): Promise<Running> {
  const database = await createTestDatabase()
  const posthorn = await startPosthorn({
    databaseUrl: database.url,
    temporalAddress: testServers().temporalAddress,
    taskQueue: `browser-${randomUUID()}`,
    env: { TEMPORAL_UI_URL, POSTHORN_OPERATOR_KEYS: operatorKeysText() },
  })
  // Root has no sandbox; there is nothing here to be protected from.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP *.test 127.0.0.1']
  return { database, posthorn, browser: await chromium.launch({ executablePath, args }) }
}

// Outside of every `describe`: after all of them.
after(async () => {
  const running = await started
  await running?.browser.close()
  await running?.posthorn.stop()
  await running?.database.drop()
})

/**
 * The running product, a Chromium, and for the `describe` it is called in an organisation and a real receiver of its
 * own. Without a Chromium the tests are skipped, which is said.
 */
export function useDeveloperArea(): DeveloperArea {
  const suite = {} as { stage: Stage; posthorn: PosthornProcess }
  let browser: Browser | undefined
  const visitors: Visitor[] = []

  before(async function () {
    const { chromium: executablePath } = testServers()
    if (executablePath === null) {
      process.stderr.write('\n  NO CHROMIUM: THE BROWSER TESTS ARE SKIPPED (apt-get install chromium)\n\n')
      this.skip()
    }
    const running = await (started ??= start(executablePath))
    browser = running.browser
    const { database, posthorn } = running
    Object.assign(suite, { posthorn, stage: await createStage({ database }) })
  })
  afterEach(async () => {
    for (const { page, faults } of visitors.splice(0)) {
      await page.context().close()
      expect(faults).to.deep.equal([])
    }
  })
  after(async () => {
    // Not there where the tests were skipped. The database is everybody's.
    if ('stage' in suite) await suite.stage.receiver.close()
  })

  const visit: DeveloperArea['visit'] = async (path = '/developer', options = {}) => {
    if (browser === undefined) throw new Error('there is no browser')
    const context = await browser.newContext({
      viewport: { width: 1200, height: 900 },
      locale: 'en-GB',
      ...options,
    })
    context.setDefaultTimeout(PAGE_TIMEOUT_MS)
    const page = await context.newPage()
    const visitor = { page, faults: [] as string[] }
    page.on('pageerror', ({ message }) => visitor.faults.push(message))
    page.on('console', (message) => {
      // Refusals of the API are shown by the page itself; the browser mentions them too.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        visitor.faults.push(message.text())
    })
    page.on('dialog', (dialog) => {
      visitor.faults.push(`a dialog of the browser: ${dialog.message()}`)
      void dialog.dismiss()
    })
    visitors.push(visitor)
    await page.goto(new URL(path, suite.posthorn.url).href)
    return visitor
  }
  return Object.assign(suite, {
    visit,
    async signIn(
      member: TestMember = suite.stage.member,
      options: BrowserContextOptions & { path?: string } = {},
    ) {
      const { path = '/developer', ...context } = options
      const visitor = await visit(path, context)
      await fillIn(visitor.page, member.apiKey)
      await visitor.page.getByRole('button', { name: 'Sign out' }).waitFor()
      return visitor
    },
  })
}

/**
 * Returns what axe finds serious or worse on the page, and whether it is wider than its window, each after the name of
 * the view. It needs `bypassCSP`.
 */
export async function faultsOf(page: Page, view: string): Promise<string[]> {
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<AxeResults>('axe.run()')
  const faults = violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
  const { scrollWidth, clientWidth } = await page.evaluate<Record<'scrollWidth' | 'clientWidth', number>>(
    '({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })',
  )
  if (scrollWidth > clientWidth) faults.push('wider than the window')
  return faults.map((fault) => `${view}: ${fault}`)
}

/** Types a key into the sign-in page and sends it off. */
export async function fillIn(page: Page, key: string, label = 'API key'): Promise<void> {
  await page.getByLabel(label).fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
}
