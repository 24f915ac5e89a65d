import { expect } from 'chai'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { writeBacklog, writeFailedAttempts } from '../helpers/deliveries/backlog.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { faultsOf, useDeveloperArea } from '../helpers/browser/browser.ts'

const LONG_KEY = `comment:${'long'.repeat(23)}`
const LONG_PATH = `/in/${'segment-'.repeat(210)}`

const FORMS: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  narrow: { colorScheme: 'light', viewport: { width: 375, height: 800 } },
}

describe('the appearance of deliveries and events', () => {
  const area = useDeveloperArea()
  let [webhookId, deliveryId, eventId] = ['', '', '']

  before(async () => {
    const { stage } = area
    const { dataSource, member } = stage
    const { organisationId } = member
    stage.answerWith((index, _post, response) => {
      response
        .writeHead(index === 0 ? 503 : 200, { 'content-type': 'application/json', 'x-served-by': 'front-7' })
        .end(`{"ok":${index > 0},"took":1.50,"note":null,"token":"${'a1b2'.repeat(40)}"}`)
      return null
    })
    const url = stage.receiver.url.replace('/hook', LONG_PATH)
    webhookId = (await createWebhookRow(dataSource, { organisationId, url })).id
    const backlog = { organisationId, webhookId }
    await writeBacklog(dataSource, { ...backlog, state: 'failed', count: 280 })
    const published = await area.posthorn.call('POST', `/api/orgs/${organisationId}/events`, {
      apiKey: member.apiKey,
      body: {
        event: 'comment:created',
        data: { id: 12, text: 'A long word: ' + 'x'.repeat(300), tags: ['a', null, true] },
        traceId: `trace-${'0123456789'.repeat(10)}`,
      },
    })
    const answer = published.json as { id: string; deliveries: { id: string; webhookId: string }[] }
    eventId = answer.id
    deliveryId = answer.deliveries.find((one) => one.webhookId === webhookId)!.id
    await stage.reaches(deliveryId, { state: 'completed', attempts: 2 })
    const waiting = await writeBacklog(dataSource, {
      ...backlog,
      state: 'waiting',
      count: 15,
      eventKey: LONG_KEY,
    })
    const some = await writeBacklog(dataSource, {
      ...backlog,
      state: 'failed',
      count: 5,
      eventKey: 'invoice:paid',
    })
    await writeFailedAttempts(dataSource, [...waiting.slice(9), ...some], { statusCode: 503, url })
  })

  const VIEWS: Record<string, (page: Page) => Promise<void>> = {
    deliveries: async (page) => {
      await page.goto(`${area.posthorn.url}/developer?webhook=${webhookId}&tab=deliveries`)
      await page
        .getByLabel(/^Select delivery/)
        .nth(19)
        .waitFor()
    },
    selected: async (page) => {
      await page.getByLabel('State').selectOption('Permanently failed')
      await page.getByText('Waiting for retry').nth(2).waitFor({ state: 'detached' })
      await page
        .getByLabel(/^Select delivery/)
        .nth(19)
        .waitFor()
      await page.getByLabel('Select this page').check()
      await page.getByRole('button', { name: 'Select all that match' }).waitFor()
    },
    'retry-all': async (page) => {
      await page.getByRole('button', { name: 'Select all that match' }).click()
      await page.getByRole('button', { name: 'Retry all' }).click()
      await page.getByRole('dialog').getByRole('button', { name: 'Retry (285)' }).waitFor()
    },
    delivery: async (page) => {
      await page.goto(`${area.posthorn.url}/developer?webhook=${webhookId}&delivery=${deliveryId}`)
      await page.getByRole('region', { name: 'Body of the answer' }).waitFor()
    },
    events: async (page) => {
      await page.goto(`${area.posthorn.url}/developer?view=events`)
      await page.getByRole('table', { name: 'Events' }).waitFor()
    },
    event: async (page) => {
      await page.goto(`${area.posthorn.url}/developer?view=events&event=${eventId}`)
      await page.getByRole('region', { name: 'Payload' }).waitFor()
    },
  }

  for (const [form, options] of Object.entries(FORMS))
    it(`${form}: 300 deliveries, long keys and long URLs have no serious finding of axe and no overflow`, async () => {
      const findings: string[] = []
      // What axe does to look at a page is not what the page does: its policy is another test's.
      const { page } = await area.signIn(area.stage.member, { ...options, bypassCSP: true })
      for (const [name, reach] of Object.entries(VIEWS)) {
        await reach(page)
        findings.push(...(await faultsOf(page, name)))
      }
      expect(findings).to.deep.equal([])
    })
})
