import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createPortalLink, portalLinkOf } from '../helpers/api/operator.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'
import { faultsOf, useDeveloperArea } from '../helpers/browser/browser.ts'
import { eventually } from '../helpers/eventually.ts'

describe('live deliveries in the developer area', () => {
  const area = useDeveloperArea()
  let commentId: string

  before(async () => {
    commentId = (await createCommentWebhook(area, '/comments')).id
    await area.stage.dataSource.query(`UPDATE webhook SET description = 'Comments' WHERE id = $1`, [
      commentId,
    ])
  })

  const rowsOf = (page: Page) =>
    page.getByRole('table', { name: 'Deliveries' }).locator('tbody').getByRole('row')
  const statusOf = (page: Page, words: string) =>
    page.getByRole('region', { name: 'Live deliveries' }).getByRole('status').filter({ hasText: words })
  const at = (webhookId: string, filter = '') => `/developer?webhook=${webhookId}&tab=live${filter}`
  const publish = (event = 'comment:created') =>
    area.stage.publish(area.posthorn, { event, webhookId: commentId })

  it('show a delivery of the webhook by itself, and what becomes of it, soon after its event', async () => {
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${commentId}` })
    await page.getByRole('link', { name: 'Live', exact: true }).click()
    await statusOf(page, 'Live').waitFor()
    await page.getByText('Nothing so far.').waitFor()
    const read = (part: string) => page.waitForRequest((request) => request.url().includes(part))
    const id = await eventually(async () => {
      await read('/deliveries?')
      const publishedAt = Date.now()
      const again = read('/deliveries?')
      const published = await publish()
      await again
      expect(Date.now() - publishedAt, 'without the stream it takes three seconds').to.be.below(2_500)
      return published
    })
    await rowsOf(page)
      .filter({ hasText: `…${id.slice(-8)}` })
      .filter({ hasText: 'Completed' })
      .waitFor()
  })

  it('show those of all webhooks with the names of these, from a link in the list', async () => {
    const { page } = await area.signIn()
    await page.getByRole('link', { name: 'Live', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Live deliveries' }).waitFor()
    await publish()
    await area.stage.publish(area.posthorn)
    await rowsOf(page)
      .filter({ hasText: 'comment:created' })
      .filter({ hasText: 'Comments' })
      .first()
      .waitFor()
    const other = rowsOf(page).filter({ hasText: 'customer:created' }).first()
    await other.getByRole('link').click()
    await page.getByRole('heading', { level: 1, name: 'customer:created' }).waitFor()
    await page.goBack()
    await rowsOf(page).first().waitFor()
  })

  it('stand still while paused, say how many came meanwhile, and go on', async () => {
    const { page } = await area.signIn(area.stage.member, { path: at(commentId) })
    await rowsOf(page).first().waitFor()
    const before = await rowsOf(page).count()
    await page.getByRole('button', { name: 'Pause' }).click()
    await statusOf(page, 'Paused at').waitFor()
    await page.getByText('0 deliveries came meanwhile.').waitFor()
    await publish()
    const last = await publish()
    await page.getByText('2 deliveries came meanwhile.').waitFor()
    expect(await rowsOf(page).count()).to.equal(before)
    await page.getByRole('button', { name: 'Resume' }).click()
    await rowsOf(page)
      .filter({ hasText: `…${last.slice(-8)}` })
      .waitFor()
    expect(await rowsOf(page).count()).to.equal(before + 2)
    await statusOf(page, 'Live').waitFor()
  })

  it('are filtered by state and event key, which stay in the address', async () => {
    await writeBacklogOf(area, commentId, 'failed', 2)
    const { page } = await area.signIn(area.stage.member, { path: at(commentId) })
    await rowsOf(page).nth(2).waitFor()
    await page.getByLabel('State').selectOption('Permanently failed')
    await rowsOf(page).nth(2).waitFor({ state: 'detached' })
    await rowsOf(page).nth(1).waitFor()
    expect(await rowsOf(page).count()).to.equal(2)
    await page.reload()
    await rowsOf(page).nth(1).waitFor()
    expect(await rowsOf(page).count()).to.equal(2)
    await page.getByLabel('Event key').fill('invoice:paid')
    await page.getByLabel('Event key').press('Enter')
    await page.getByText('Nothing so far.').waitFor()
  })

  it('keep the newest 50, and say when more came than they could show', async () => {
    const { page } = await area.signIn(area.stage.member, { path: at(commentId) })
    await rowsOf(page).first().waitFor()
    await writeBacklogOf(area, commentId, 'failed', 60)
    await page.getByText('more had come than is shown here').waitFor()
    expect(await rowsOf(page).count()).to.equal(50)
    await page.getByRole('link', { name: 'All deliveries' }).click()
    await page.getByRole('search', { name: 'Filter deliveries' }).waitFor()
  })

  it('go on while the stream is interrupted, and say so', async () => {
    const { page } = await area.signIn(area.stage.member, { path: '/developer' })
    let isCut = true
    await page.route('**/events/stream?*', (route) => (isCut ? route.abort() : route.continue()))
    await page.goto(area.posthorn.url + at(commentId))
    await statusOf(page, 'Reconnecting').waitFor()
    const id = await publish()
    await rowsOf(page)
      .filter({ hasText: `…${id.slice(-8)}` })
      .waitFor()
    isCut = false
    await statusOf(page, 'Live').waitFor()
  })

  it('are read without a stream in a session of a portal link', async () => {
    const created = await createPortalLink(area.posthorn, area.stage.member)
    const { page } = await area.visit(portalLinkOf(created).url)
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    await page.getByRole('link', { name: 'Live', exact: true }).click()
    await statusOf(page, 'No event stream').waitFor()
    const id = await publish()
    await rowsOf(page)
      .filter({ hasText: `…${id.slice(-8)}` })
      .waitFor()
  })

  it('have no serious finding of axe and no overflow in either theme, at 1440, 1024 and 375 px', async () => {
    const findings: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await area.signIn(area.stage.member, { colorScheme, bypassCSP: true })
      for (const width of [1440, 1024, 375])
        for (const path of ['/developer?view=live', at(commentId)]) {
          await page.setViewportSize({ width, height: 800 })
          await page.goto(area.posthorn.url + path)
          await rowsOf(page).first().waitFor()
          findings.push(...(await faultsOf(page, `${colorScheme} ${path} ${width}`)))
        }
    }
    expect(findings).to.deep.equal([])
  })
})
