import { expect } from 'chai'
import { publishRow } from '../helpers/database/factories.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { createCommentWebhook } from '../helpers/browser/comment-webhook.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

describe('the words of the developer area', () => {
  const area = useDeveloperArea()
  const pathOf = (query: string) => `/developer?webhook=${area.stage.webhookId}${query}`

  it('calls a state by the same words in the list, its filter, the delivery and its event', async () => {
    const { stage } = area
    const { dataSource, member, webhookId } = stage
    await writeBacklog(dataSource, {
      organisationId: member.organisationId,
      webhookId,
      state: 'failed',
      count: 1,
    })
    await publishRow(dataSource, member.organisationId, { eventKey: 'invoice:paid', sweepAfterMs: 600_000 })
    const { page } = await area.signIn(member, { path: pathOf('&tab=deliveries') })
    const rows = page.getByRole('table').locator('tbody').getByRole('row')
    await rows.nth(1).waitFor()
    for (const words of ['Waiting for first attempt', 'Permanently failed']) {
      await rows.filter({ hasText: words }).waitFor()
      await page.getByLabel('State').selectOption({ label: words })
      await rows.nth(1).waitFor({ state: 'detached' })
      await rows.getByText(words).waitFor()
      await page.getByLabel('State').selectOption({ label: 'All' })
      await rows.nth(1).waitFor()
    }
    await page.getByRole('columnheader', { name: 'Published' }).waitFor()
    await rows.filter({ hasText: 'Permanently failed' }).getByRole('link').click()
    await page.getByText('Permanently failed: all attempts failed.').waitFor()
    await page.goto(`${area.posthorn.url}/developer?view=events`)
    await page.getByText('1 permanently failed').waitFor()
    await page.getByText('1 waiting for first attempt').waitFor()
  })

  it('calls a first attempt that is about to begin due, as it calls a retry', async () => {
    const { dataSource, member } = area.stage
    const hook = await createCommentWebhook(area, '/comments')
    const published = await publishRow(dataSource, member.organisationId, { eventKey: 'comment:created' })
    const { deliveryId } = published.find(({ webhookId }) => webhookId === hook.id)!
    // The page never finds it overdue.
    await dataSource.query(
      `UPDATE delivery SET created_at = now() + interval '1 hour', sweep_at = now() + interval '1 hour' WHERE id = $1`,
      [deliveryId],
    )
    const path = `/developer?webhook=${hook.id}&delivery=${deliveryId}`
    const { page } = await area.signIn(member, { path })
    await page.getByRole('listitem').filter({ hasText: 'Attempt 1' }).first().getByText('Due now').waitFor()
  })

  it('says what is wrong with a filter, a page and a URL without pointers and patterns', async () => {
    const { page } = await area.signIn(area.stage.member, { path: pathOf('&tab=deliveries&statusCode=999') })
    const problem = page.getByRole('region', { name: 'Deliveries' }).getByRole('alert')
    await problem.getByText('Status code must be at most 599.', { exact: true }).waitFor()
    await page.goto(`${area.posthorn.url}${pathOf('&tab=deliveries&search=a%20b')}`)
    await problem.getByText('Search must be visible ASCII characters without a space.').waitFor()
    await page.goto(`${area.posthorn.url}${pathOf('&tab=deliveries&cursor=x')}`)
    await problem.getByText('This list has no such page. Go to a newer one.').waitFor()
    await page.goto(`${area.posthorn.url}/developer`)
    await page.getByRole('button', { name: 'New webhook' }).click()
    await page.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByText('The URL has no host, such as hooks.example.com.').waitFor()
  })

  it('says that an address names no page or no tab, and leads on', async () => {
    const { page } = await area.signIn(area.stage.member, { path: '/developer?view=evnts' })
    await page.getByRole('heading', { level: 1, name: 'No such page' }).waitFor()
    expect(await page.title()).to.equal('No such page · Posthorn')
    await page.getByRole('link', { name: 'All webhooks' }).click()
    await page.getByRole('heading', { level: 1, name: 'Webhooks' }).waitFor()
    await page.goto(`${area.posthorn.url}${pathOf('&tab=delivries')}`)
    await page.getByRole('alert').getByText('This page has no such tab.').waitFor()
    await page.getByRole('link', { name: 'Deliveries' }).click()
    await page.getByRole('search', { name: 'Filter deliveries' }).waitFor()
  })

  it('shows the ids of the webhook and its organisation, with buttons that copy them', async () => {
    const { member, webhookId } = area.stage
    for (const tab of ['', '&tab=settings']) {
      const { page } = await area.signIn(member, {
        path: pathOf(tab),
        permissions: ['clipboard-read', 'clipboard-write'],
      })
      await page.getByText(webhookId, { exact: true }).waitFor()
      await page.getByText(member.organisationId, { exact: true }).waitFor()
      for (const [name, id] of [
        ['webhook', webhookId],
        ['organisation', member.organisationId],
      ]) {
        await page.getByRole('button', { name: `Copy ${name!} id` }).click()
        await page.getByText(`Copied the ${name!} id.`).waitFor()
        expect(await page.evaluate<string>('navigator.clipboard.readText()')).to.equal(id)
      }
    }
  })
})
