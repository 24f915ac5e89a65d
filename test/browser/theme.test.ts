import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import type { Page } from 'playwright-core'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'

const LIGHT = 'rgb(247, 246, 243)'
const DARK = 'rgb(22, 22, 20)'

describe('the theme of the pages', () => {
  const area = useDeveloperArea()
  const ground = (page: Page) => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')

  it('is the system’s until another is chosen, and follows it', async () => {
    const { page } = await area.signIn(area.stage.member, { colorScheme: 'dark' })
    expect(await page.getByLabel('Theme').inputValue()).to.equal('system')
    expect(await ground(page)).to.equal(DARK)
    await page.emulateMedia({ colorScheme: 'light' })
    await eventually(async () => expect(await ground(page)).to.equal(LIGHT))
  })

  it('is remembered, for /docs too, and the first paint has it', async () => {
    const { page } = await area.signIn(area.stage.member, { colorScheme: 'light' })
    await page.getByLabel('Theme').selectOption('dark')
    expect(await ground(page)).to.equal(DARK)
    // Nothing of the page itself runs, and still it has its colours.
    await page.route(/bundled\/(app|docs)-main.*\.js$/, (route) => route.abort())
    for (const path of ['/developer', '/docs']) {
      await page.goto(`${area.posthorn.url}${path}`)
      expect(await ground(page), path).to.equal(DARK)
    }
    await page.unroute(/bundled\/(app|docs)-main.*\.js$/)
    await page.goto(`${area.posthorn.url}/docs`)
    await page.getByLabel('Theme').selectOption('system')
    expect(await ground(page)).to.equal(LIGHT)
  })

  it('changes in every tab of the browser', async () => {
    const { page } = await area.signIn(area.stage.member, { colorScheme: 'light' })
    const other = await page.context().newPage()
    await other.goto(`${area.posthorn.url}/docs`)
    await other.getByLabel('Theme').selectOption('dark')
    await page.waitForFunction(`document.documentElement.dataset.theme === 'dark'`)
  })
})

describe('the locale of dates and numbers', () => {
  const area = useDeveloperArea()

  it('is the browser’s, in English texts and the zone of the organisation', async () => {
    const { dataSource, member } = area.stage
    const { organisationId } = member
    const { id: webhookId } = await createWebhookRow(dataSource, {
      organisationId,
      url: 'https://x.example/',
    })
    await writeBacklog(dataSource, { organisationId, webhookId, state: 'failed', count: 1_234 })
    await dataSource.query(`UPDATE delivery SET created_at = '2026-03-14T08:26:53Z' WHERE webhook_id = $1`, [
      webhookId,
    ])
    const path = `/developer?webhook=${webhookId}&tab=deliveries`
    for (const [locale, count, time] of [
      ['de-DE', '1.234', '14. März, 09:26'],
      ['en-US', '1,234', 'Mar 14, 09:26'],
    ] as const) {
      const { page } = await area.signIn(member, { path, locale, timezoneId: 'Asia/Tokyo' })
      await page.getByText(time).first().waitFor()
      await page.goto(`${area.posthorn.url}/developer?webhook=${webhookId}`)
      await page.getByText(count).first().waitFor()
      await page.getByText('Permanently failed').first().waitFor()
    }
  })
})
