import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe, { type AxeResults } from 'axe-core'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { fillIn, useDeveloperArea } from '../helpers/browser/browser.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { eventually } from '../helpers/eventually.ts'

/** A logo with styles, and with scripts, which must never run. */
const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="document.title = 'ran'">
  <style>rect { fill: #00ff00 }</style>
  <rect width="40" height="40"/>
  <script>document.title = 'ran'</script>
</svg>`

describe('the brand of an embedding platform', () => {
  const area = useDeveloperArea()
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-brand-'))
  let posthorn: PosthornProcess
  before(async () => {
    const file = join(folder, 'logo.svg')
    writeFileSync(file, LOGO)
    posthorn = await area.stage.start({
      command: 'api',
      env: { BRAND_NAME: 'Zon & Zee', BRAND_LOGO_FILE: file, BRAND_ACCENT_COLOR: '#b3261e' },
    })
  })
  after(async () => {
    // Not there where the tests were skipped.
    await (posthorn as PosthornProcess | undefined)?.stop()
    rmSync(folder, { recursive: true })
  })

  const logoOf = (page: Page) => page.locator('link[rel="icon"]').getAttribute('href')
  /** Waits until every picture of the page is the logo, and shows it. */
  const showsLogo = (page: Page) =>
    page.waitForFunction(
      `document.images.length > 0 && [...document.images].every((image) => image.naturalWidth === 40)`,
    )
  async function contrastFindings(page: Page): Promise<string[]> {
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate<AxeResults>(`axe.run({ runOnly: ['color-contrast'] })`)
    return violations.flatMap(({ nodes }) => nodes.map(({ html }) => html))
  }

  for (const colorScheme of ['light', 'dark'] as const)
    it(`${colorScheme}: has its name, logo and legible colour from the sign-in on`, async () => {
      const { page } = await area.visit(`${posthorn.url}/developer`, { colorScheme, bypassCSP: true })
      await page.getByLabel('API key').waitFor()
      expect(await page.title()).to.equal('Sign in · Zon & Zee')
      await showsLogo(page)
      expect(await contrastFindings(page)).to.deep.equal([])
      await fillIn(page, area.stage.member.apiKey)
      await page.getByRole('banner').getByRole('link', { name: 'Zon & Zee' }).waitFor()
      await showsLogo(page)
      expect(await page.title()).to.equal('Webhooks · Zon & Zee')
      const current = await page.evaluate<string>(
        `getComputedStyle(document.querySelector('[aria-current="page"]')).color`,
      )
      expect(current === 'rgb(179, 38, 30)').to.equal(colorScheme === 'light')
      await page.getByRole('button', { name: 'New webhook' }).click()
      await page.getByRole('dialog').waitFor()
      expect(await contrastFindings(page)).to.deep.equal([])
      await page.goto(`${posthorn.url}/docs`)
      await page.getByRole('heading', { name: 'Zon & Zee API' }).waitFor()
      expect(await contrastFindings(page)).to.deep.equal([])
      for (const path of ['/developer', '/docs']) {
        await page.goto(`${posthorn.url}${path}`)
        await page.locator('h1').waitFor()
        expect(await page.locator('body').innerText(), path).to.not.match(/Posthorn(?!\/)/)
      }
    })

  it('is shown under the policy of the pages, and runs no script of a logo that is opened by itself', async () => {
    const visitor = await area.visit(`${posthorn.url}/developer`)
    const { page } = visitor
    await page.getByLabel('API key').waitFor()
    expect(visitor.faults).to.deep.equal([])
    await page.goto(`${posthorn.url}${(await logoOf(page)) ?? ''}`)
    expect(await page.evaluate(`getComputedStyle(document.querySelector('rect')).fill`)).to.equal(
      'rgb(0, 255, 0)',
    )
    expect(await page.title()).to.not.equal('ran')
    // The browser says that it ran nothing.
    await eventually(() => expect(visitor.faults.join('\n')).to.include('script'))
    page.removeAllListeners('console')
    visitor.faults.splice(0)
  })
})
