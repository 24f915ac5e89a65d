import { expect } from 'chai'
import type { Locator, Page } from 'playwright-core'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import type { DataSource } from 'typeorm'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'

/** A name of 200 characters in which no line can break. */
const UNBROKEN_NAME = 'Buchungsbestaetigungsweiterleitung'.repeat(6).slice(0, 200)

const NAMES = [
  'Data warehouse of the Antwerp office, nightly reconciliation',
  'ERP',
  'Booking confirmations for the tour operators in the Benelux',
  'Accounting export (Exact Online)',
  '',
  'Marketing automation, customers only',
]

/**
 * Writes what a large customer has: 60 webhooks with names of every length, one of them 200 characters without a space,
 * and 300 deliveries of the first of them, which has an open incident. Returns its id.
 */
async function writeCrowd(dataSource: DataSource, organisationId: string): Promise<string> {
  const ids: string[] = []
  for (let index = 0; index < 60; index++) {
    const { id } = await createWebhookRow(dataSource, {
      organisationId,
      url: `https://hooks-${String(index % 7)}.integrations.example.com/v2/tenants/camping-zon/${String(index)}?token=x`,
      subscribedEventKeys: ['invoice:paid', 'customer:created'],
      enabled: index % 9 !== 8,
    })
    ids.push(id)
    const name = index === 1 ? UNBROKEN_NAME : NAMES[index % NAMES.length]
    await dataSource.query('UPDATE webhook SET description = $2 WHERE id = $1', [id, name])
  }
  const webhookId = ids[0]!
  const backlog = { organisationId, webhookId }
  await writeBacklog(dataSource, { ...backlog, state: 'failed', count: 140 })
  await writeBacklog(dataSource, { ...backlog, state: 'waiting', count: 160, eventKey: 'invoice:paid' })
  await dataSource.query(
    `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, exhausted_at)
     VALUES (uuidv7(), $1, $2, now() - interval '3 hours', now())`,
    [organisationId, webhookId],
  )
  return webhookId
}

const SIZES = {
  desktop: { width: 1440, height: 800 },
  laptop: { width: 1024, height: 800 },
  phone: { width: 375, height: 800 },
}

describe('the developer area of a large customer', () => {
  const area = useDeveloperArea()
  let webhookId: string
  let unbrokenId: string

  before(async () => {
    const { dataSource, member } = area.stage
    const { organisationId, memberId } = member
    await dataSource.query(`UPDATE organisation SET name = $2 WHERE id = $1`, [
      organisationId,
      'Camping Zonneweelde Middelkerke',
    ])
    await dataSource.query(`UPDATE member SET name = 'Annemie Vandenbroucke' WHERE id = $1`, [memberId])
    webhookId = await writeCrowd(dataSource, organisationId)
    const [row] = await dataSource.query<{ id: string }[]>('SELECT id FROM webhook WHERE description = $1', [
      UNBROKEN_NAME,
    ])
    unbrokenId = row!.id
  })

  const signIn = (size: keyof typeof SIZES, path = '/developer') =>
    area.signIn(area.stage.member, { path, viewport: SIZES[size] })
  const boxOf = async (locator: Locator) => (await locator.boundingBox())!
  const overflow = (page: Page) =>
    page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth')

  for (const [size, maxHeight] of [
    ['desktop', 50],
    ['laptop', 50],
    ['phone', 90],
  ] as const)
    it(`${size}: has a header of ${String(maxHeight)} px at most that names the organisation`, async () => {
      const { page } = await signIn(size)
      const header = page.getByRole('banner')
      expect((await boxOf(header)).height).to.be.at.most(maxHeight)
      const name = await boxOf(header.getByText('Camping Zonneweelde'))
      expect(name.width).to.be.at.least(60)
      for (const link of await header.getByRole('link').all())
        expect((await boxOf(link)).x + (await boxOf(link)).width).to.be.at.most(SIZES[size].width)
    })

  // On both sides of each width at which a column goes.
  for (const width of [1024, 1119, 1120, 1247, 1248])
    it(`leaves room to names and URLs of webhooks in a window of ${String(width)} px`, async () => {
      const { page } = await area.signIn(area.stage.member, { viewport: { width, height: 800 } })
      const row = page.getByRole('row').filter({ hasText: 'Accounting export' }).first()
      expect((await boxOf(row.getByRole('rowheader'))).width, 'name').to.be.at.least(150)
      expect((await boxOf(row.locator('.url-cell'))).width, 'URL').to.be.at.least(70)
      // Headings are the words for the states of deliveries, and none is cut.
      for (const name of ['Waiting for first attempt', 'Waiting for retry', 'Permanently failed'])
        await page.getByRole('columnheader', { name, exact: true }).waitFor()
      const cut = `[...document.querySelectorAll('thead th')].filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)`
      expect(await page.evaluate(cut)).to.deep.equal([])
    })

  for (const size of ['desktop', 'laptop', 'phone'] as const)
    it(`${size}: keeps a name of 200 characters without a space inside of the window`, async () => {
      const { page } = await signIn(size)
      await page.getByRole('link', { name: UNBROKEN_NAME }).waitFor()
      expect(await overflow(page), 'list').to.equal(0)
      for (const tab of ['', 'deliveries', 'incidents', 'settings']) {
        await page.goto(`${area.posthorn.url}/developer?webhook=${unbrokenId}&tab=${tab}`)
        await page.getByRole('heading', { level: 1, name: UNBROKEN_NAME }).waitFor()
        expect(await overflow(page), tab).to.equal(0)
      }
      if (size !== 'phone') return
      await page.getByRole('button', { name: 'Delete' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByRole('heading', { name: UNBROKEN_NAME }).waitFor()
      const inner =
        "document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth"
      expect(await page.evaluate<number>(inner)).to.equal(0)
    })

  for (const [size, maxTop] of [
    ['desktop', 400],
    ['laptop', 400],
    ['phone', 480],
  ] as const)
    it(`${size}: shows the first delivery within ${String(maxTop)} px, with the filters closed`, async () => {
      const { page } = await signIn(size, `/developer?webhook=${webhookId}&tab=deliveries`)
      const first = page.getByRole('table').getByRole('row').nth(1)
      await first.waitFor()
      expect((await boxOf(first)).y).to.be.at.most(maxTop)
      const filters = page.getByRole('button', { name: /^Filters/ })
      expect(await filters.getAttribute('aria-expanded')).to.equal('false')
      expect(await page.getByLabel('Until').isVisible()).to.equal(false)
      await filters.click()
      await page.getByLabel('Status code').fill('503')
      await page.getByLabel('Status code').press('Enter')
      await page.getByRole('button', { name: 'Filters, 1 set' }).click()
      expect(await page.getByLabel('Status code').isVisible()).to.equal(false)
      await page.reload()
      await page.getByLabel('Status code').waitFor()
    })

  it('desktop and laptop: shows an event on one line, with its id', async () => {
    const eventId = await area.stage.publish(area.posthorn).then(async (deliveryId) => {
      const [row] = await area.stage.dataSource.query<{ event_id: string }[]>(
        'SELECT event_id FROM delivery WHERE id = $1',
        [deliveryId],
      )
      return row!.event_id
    })
    for (const size of ['desktop', 'laptop'] as const) {
      const { page } = await signIn(size, '/developer?view=events')
      const row = page.getByRole('table', { name: 'Events' }).getByRole('row').nth(1)
      await row.getByText(`…${eventId.slice(-8)}`).waitFor()
      // Only an event with deliveries in more states than fit takes a second line.
      const ordinary = page.getByRole('row', { name: /^invoice:paid 1 / }).first()
      expect((await boxOf(ordinary)).height, size).to.be.at.most(40)
      expect(await overflow(page), size).to.equal(0)
    }
  })

  it('keeps a click that follows a refused submit, although a message goes with it', async () => {
    const { page } = await signIn('desktop')
    await page.getByRole('button', { name: 'New webhook' }).click()
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByText('Choose at least one event key.').waitFor()
    await page.getByLabel('Search event keys').fill('invoice:paid')
    // As by hand: the message must go between pressing and releasing the button, if it goes at all.
    const box = await boxOf(page.getByRole('checkbox', { name: /^invoice:paid / }))
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
    await page.mouse.down()
    await page.waitForFunction("document.activeElement.type === 'checkbox'")
    await page.mouse.up()
    await page.getByText('1 chosen').waitFor()
  })
})
