import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { faultsOf, useDeveloperArea } from '../helpers/browser/browser.ts'

/** `POSTHORN_SCREENSHOTS=1` writes what the README shows; otherwise a run leaves the working copy as it was. */
const WRITES_SCREENSHOTS = process.env['POSTHORN_SCREENSHOTS'] === '1'
const KEPT = new Set([
  'webhooks-light',
  'webhook-light',
  'webhook-dark',
  'webhook-narrow',
  'delivery-light',
  'new-webhook-light',
  'force-retry-dark',
  'docs-light',
])
const SCREENSHOTS = fileURLToPath(new URL('../../docs/screenshots/', import.meta.url))

const FORMS: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  narrow: { colorScheme: 'dark', viewport: { width: 320, height: 700 } },
  // What a window of 1200 × 900 has at 200 %.
  zoomed: { colorScheme: 'light', viewport: { width: 600, height: 450 }, deviceScaleFactor: 2 },
}

describe('the appearance of the developer area', () => {
  const area = useDeveloperArea()
  let failingId: string
  let deliveryId: string

  /** A place with some history: a healthy webhook, one that fails, one that is switched off. */
  before(async () => {
    const { stage } = area
    const { dataSource, member } = stage
    const { organisationId } = member
    stage.answerWith((_index, { path }, response) => {
      if (path === '/hook') return 200
      response
        .writeHead(503, { 'content-type': 'text/plain' })
        .end('upstream connect error: connection refused')
      return null
    })
    await dataSource.query(`UPDATE organisation SET name = 'Camping Zon' WHERE id = $1`, [organisationId])
    await dataSource.query(`UPDATE member SET name = 'An Peeters' WHERE id = $1`, [member.memberId])
    const row = { organisationId, url: stage.receiver.url.replace('/hook', '/bookings/events') }
    const subscribedEventKeys = [
      'customer:created',
      'customer:updated',
      'invoice:created',
      'invoice:paid',
      'payment:created',
    ]
    failingId = (await createWebhookRow(dataSource, { ...row, subscribedEventKeys })).id
    await createWebhookRow(dataSource, { organisationId, url: 'https://erp.example.com/in', enabled: false })
    await writeBacklog(dataSource, { organisationId, webhookId: failingId, state: 'failed', count: 3 })
    for (let index = 0; index < 4; index++)
      deliveryId = await stage.publish(area.posthorn, { event: 'customer:created', webhookId: failingId })
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 3 })
    await earlierHours()
  })

  /** Attempts of the day before, for the chart to have something to show. */
  async function earlierHours(): Promise<void> {
    await area.stage.dataSource.query(
      `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, status_code)
       SELECT $1, 1000 + n, $2, 'schedule', 'https://x.example/', now() - n * interval '9 minutes', 80,
              CASE WHEN n % 7 = 0 THEN 'failed' ELSE 'succeeded' END, 200
         FROM generate_series(10, 10 + 23 * 6) n WHERE n % 5 <> 0 OR n > 80`,
      [deliveryId, failingId],
    )
  }

  async function keep(page: Page, name: string): Promise<void> {
    if (!WRITES_SCREENSHOTS || !KEPT.has(name)) return
    mkdirSync(SCREENSHOTS, { recursive: true })
    await page.screenshot({ path: `${SCREENSHOTS}${name}.png`, animations: 'disabled' })
  }

  /** The main states: how one gets there, and by what one knows that one is there. */
  const STATES: Record<string, (page: Page) => Promise<void>> = {
    webhooks: async (page) => {
      await page.getByText('Failing since').waitFor()
    },
    'new-webhook': async (page) => {
      await page.getByRole('button', { name: 'New webhook' }).click()
      await page.getByLabel('Search event keys').fill('invoice')
      await page.getByLabel('invoice:paid').check()
    },
    webhook: async (page) => {
      await page.keyboard.press('Escape')
      await page.getByRole('link', { name: '/bookings/events' }).click()
      await page.getByRole('region', { name: 'Payload' }).waitFor()
      await page.getByText('99th percentile').waitFor()
    },
    'force-retry': async (page) => {
      await page.getByRole('button', { name: 'Force retry' }).click()
      await page.getByRole('dialog').getByText('attempted at once').waitFor()
    },
    'switch-off': async (page) => {
      await page.keyboard.press('Escape')
      await page.locator('.heading').getByRole('switch').click()
      await page.getByRole('dialog').getByText('stopped').waitFor()
    },
    deliveries: async (page) => {
      await page.keyboard.press('Escape')
      await page.getByRole('link', { name: 'Deliveries', exact: true }).click()
      await page.getByText('customer:created').first().waitFor()
    },
    incidents: async (page) => {
      await page.getByRole('link', { name: 'Incidents' }).click()
      await page.getByText('Open', { exact: true }).waitFor()
    },
    settings: async (page) => {
      await page.getByRole('link', { name: 'Settings' }).click()
      await page.getByRole('region', { name: 'Example of a delivery' }).waitFor()
    },
    'edit-webhook': async (page) => {
      await page.getByRole('button', { name: 'Edit' }).click()
      await page.getByText('5 chosen').waitFor()
    },
    catalogue: async (page) => {
      await page.goto(`${area.posthorn.url}/developer?view=catalogue&key=invoice:paid`)
      await page.getByRole('region', { name: 'Example of invoice:paid' }).waitFor()
    },
    audit: async (page) => {
      await page.getByRole('link', { name: 'Audit' }).click()
      await page.getByRole('row').filter({ hasText: 'Signed in' }).first().waitFor()
    },
    notifications: async (page) => {
      await page.getByRole('link', { name: 'Notifications' }).click()
      await page.getByText('Push messages are not set up here').waitFor()
    },
    delivery: async (page) => {
      await page.keyboard.press('Escape')
      await page.goto(`${area.posthorn.url}/developer?webhook=${failingId}&delivery=${deliveryId}`)
      await page.getByRole('region', { name: 'Body of the answer' }).waitFor()
    },
  }

  for (const [form, options] of Object.entries(FORMS))
    it(`${form}: has no serious finding of axe and no overflow`, async () => {
      const findings: string[] = []
      // What axe does to look at a page is not what the page does: its policy is another test's.
      const { page } = await area.visit('/developer', { ...options, bypassCSP: true })
      await page.getByLabel('API key').waitFor()
      const look = async (name: string) => {
        findings.push(...(await faultsOf(page, name)))
        await keep(page, `${name}-${form}`)
      }
      await look('sign-in')
      await page.getByLabel('API key').fill(area.stage.member.apiKey)
      await page.keyboard.press('Enter')
      for (const [name, reach] of Object.entries(STATES)) {
        await reach(page)
        await look(name)
      }
      await page.goto(`${area.posthorn.url}/docs#createWebhook`)
      await page.locator('#createWebhook[open]').waitFor()
      await look('docs')
      expect(findings).to.deep.equal([])
    })

  it('shows times in the zone of the organisation, and the exact instant in UTC next to them', async () => {
    const { page } = await area.signIn(area.stage.member, {
      path: `/developer?webhook=${failingId}`,
      timezoneId: 'Asia/Tokyo',
    })
    const time = page.getByText('Failing since').locator('time')
    const iso = (await time.getAttribute('datetime')) ?? ''
    const inBrussels = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Brussels', timeStyle: 'medium' })
    expect(await time.innerText()).to.include(inBrussels.format(new Date(iso)))
    expect(await time.getAttribute('title')).to.equal(`${iso.replace('T', ' ').replace('Z', '')} UTC`)
  })

  it('documents every operation at /docs, with a search', async () => {
    const { page } = await area.visit('/docs')
    await page.getByLabel('Find an operation').fill('post retry')
    const shown = await page.locator('.operation > summary').allInnerTexts()
    expect(shown).to.have.length(2)
    await page.getByLabel('Find an operation').fill('')
    const { paths } = (await area.posthorn.call('GET', '/openapi.json')).json as {
      paths: Record<string, object>
    }
    const operations = Object.values(paths).flatMap((operation) => Object.keys(operation))
    expect(await page.locator('.operation').count()).to.equal(operations.length)
  })

  it('explains at /docs, without a session, how to authenticate, verify a delivery and read an error', async () => {
    const { page } = await area.visit('/docs')
    await page.getByRole('heading', { name: 'Authentication' }).waitFor()
    const receiving = page.locator('#receiving')
    for (const text of ['X-Webhook-Signature', 'X-Webhook-Event-ID', 'timingSafeEqual', 'compare_digest'])
      await receiving.getByText(text).first().waitFor()
    await receiving.getByLabel('Event key').selectOption('customer:created')
    await receiving.getByText('"event": "customer:created"').waitFor()
    await page.locator('#problems').getByText('missing_permission', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'signing-secret' }).click()
    const operation = page.locator('#getSigningSecret[open]')
    await operation
      .getByLabel('curl for getSigningSecret')
      .first()
      .getByText('x-api-key: $POSTHORN_KEY')
      .waitFor()
    await operation.getByText('sign in to the developer area').waitFor()
    expect(await page.locator('form.try:has-text("org_camping")').count()).to.equal(0)
  })

  it('tries an operation at /docs with the session, in the own organisation', async () => {
    const { page } = await area.signIn()
    await page.goto(`${area.posthorn.url}/docs#listWebhooks`)
    const form = page.getByRole('form', { name: 'Try listWebhooks' })
    expect(await form.getByLabel('orgId').inputValue()).to.equal(area.stage.member.organisationId)
    await form.getByRole('button', { name: 'Send GET' }).click()
    await form.getByRole('status').getByText('"subscribedEventKeys"').first().waitFor()
    await page.goto(`${area.posthorn.url}/docs#publishEvent`)
    const publish = page.getByRole('form', { name: 'Try publishEvent' })
    await publish.getByLabel('Body').fill('{"event":"invoice:unknown","data":{}}')
    await publish.getByRole('button', { name: 'Send POST' }).click()
    await publish.getByRole('status').getByText('unknown_event_key').waitFor()
  })
})
