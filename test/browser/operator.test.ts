import { expect } from 'chai'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { secretOf } from '../helpers/api/operator.ts'
import { faultsOf, fillIn, useDeveloperArea } from '../helpers/browser/browser.ts'
import { createMember, createWebhookRow, type TestMember } from '../helpers/database/factories.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'

const FORMS: Record<string, BrowserContextOptions> = {
  light: { colorScheme: 'light', viewport: { width: 1440, height: 900 } },
  dark: { colorScheme: 'dark', viewport: { width: 1024, height: 768 } },
  phone: { colorScheme: 'light', viewport: { width: 375, height: 800 } },
}

const REASON = 'It floods our network. Write to support@example.com.'

describe("the operator's pages", () => {
  const area = useDeveloperArea()
  let member: TestMember
  let webhookId: string

  beforeEach(async () => {
    const { dataSource } = area.stage
    member = await createMember(dataSource)
    const { organisationId } = member
    await dataSource.query(`UPDATE organisation SET name = 'Camping Zon' WHERE id = $1`, [organisationId])
    const url = 'https://hooks.camping.example/in/bookings?token=secret'
    webhookId = (await createWebhookRow(dataSource, { organisationId, url })).id
    await writeBacklog(dataSource, { organisationId, webhookId, state: 'waiting', count: 3 })
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at)
       VALUES (uuidv7(), $1, $2, now() - interval '2 hours')`,
      [organisationId, webhookId],
    )
  })

  async function signIn(path = '/operator', name: 'all' | 'observer' = 'all', options = {}): Promise<Page> {
    const { page } = await area.visit(path, options)
    await fillIn(page, secretOf(name), 'Operator key')
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    return page
  }
  const rowOf = (page: Page) =>
    page.getByRole('row').filter({ has: page.locator(`td[title="${webhookId}"]`) })

  it('hold a webhook with a reason, which its organisation sees and cannot undo, and end the hold', async () => {
    const page = await signIn()
    await page.getByRole('region', { name: 'Overview' }).getByText('Webhooks failing').waitFor()
    await rowOf(page).getByText('hooks.camping.example').waitFor()
    expect(await rowOf(page).innerText()).to.match(/Camping Zon[^]*2 hours ago[^]*3 waiting/)
    expect(await page.content()).not.to.include('token')
    const link = await rowOf(page).getByRole('link', { name: 'Workflows' }).getAttribute('href')
    expect(link).to.include(webhookId)
    await rowOf(page).getByRole('button', { name: 'Hold' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill(REASON)
    await dialog.getByRole('button', { name: 'Hold webhook' }).click()
    await rowOf(page).getByText('Held').waitFor()

    const { page: own } = await area.signIn(member, { path: `/developer?webhook=${webhookId}` })
    await own.getByRole('region', { name: "Operator's hold" }).getByText(REASON).waitFor()
    expect(await own.locator('.heading').getByRole('switch').isDisabled()).to.equal(true)
    await own.goto(`${area.posthorn.url}/developer?view=audit`)
    await own
      .getByRole('row')
      .filter({ hasText: 'Put a webhook on hold' })
      .getByText('operator:all')
      .waitFor()

    await page.getByRole('link', { name: 'Disabled' }).click()
    expect(new URL(page.url()).searchParams.get('state')).to.equal('disabled')
    await rowOf(page).getByText(REASON).waitFor()
    await rowOf(page).getByRole('button', { name: 'End hold' }).click()
    await dialog.getByRole('button', { name: 'End hold' }).click()
    await rowOf(page).waitFor({ state: 'detached' })
    await page.goBack()
    await page.locator('.tabs [aria-current="page"]').filter({ hasText: 'Failing' }).waitFor()
    await rowOf(page).waitFor()
    await own.goto(`${area.posthorn.url}/developer?webhook=${webhookId}`)
    await own.locator('.heading').getByRole('switch', { checked: true }).waitFor()
  })

  it('only observe with a key that only observes, and end with a sign-out', async () => {
    const page = await signIn('/operator?state=failing', 'observer')
    await rowOf(page).waitFor()
    expect(await rowOf(page).getByRole('button').count()).to.equal(0)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.reload()
    await page.getByLabel('Operator key').waitFor()
  })

  it('refuse a key that is not valid, and an API key', async () => {
    const { page } = await area.visit('/operator')
    for (const key of [`${secretOf('all')}x`, member.apiKey]) {
      await fillIn(page, key, 'Operator key')
      await page.getByText('This key is not valid').waitFor()
    }
  })

  for (const [form, options] of Object.entries(FORMS))
    it(`${form}: have no serious finding of axe and no overflow`, async () => {
      const findings: string[] = []
      const look = async (page: Page, name: string) => {
        findings.push(...(await faultsOf(page, name)))
      }
      const { page } = await area.visit('/operator', { ...options, bypassCSP: true })
      await page.getByLabel('Operator key').waitFor()
      await look(page, 'sign-in')
      await fillIn(page, secretOf('all'), 'Operator key')
      await rowOf(page).waitFor()
      await look(page, 'failing')
      await rowOf(page).getByRole('button', { name: 'Hold' }).click()
      await page.getByRole('dialog').getByLabel('Reason').fill(REASON)
      await look(page, 'hold')
      await page.getByRole('dialog').getByRole('button', { name: 'Hold webhook' }).click()
      await page.getByRole('link', { name: 'Disabled' }).click()
      await rowOf(page).getByText('Held').waitFor()
      await look(page, 'disabled')
      const { page: own } = await area.visit('/developer', { ...options, bypassCSP: true })
      await fillIn(own, member.apiKey)
      await own.getByText('Held since').waitFor()
      await look(own, 'own-list')
      await own.goto(`${area.posthorn.url}/developer?webhook=${webhookId}`)
      await own.getByRole('region', { name: "Operator's hold" }).waitFor()
      await look(own, 'own-webhook')
      expect(findings).to.deep.equal([])
    })
})
