import { expect } from 'chai'
import { createMember, createWebhookRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

describe('managing webhooks in the developer area', function () {
  this.timeout(30_000)
  const area = useDeveloperArea()

  const memberWith = (permissions: string[]) =>
    createMember(area.stage.dataSource, { organisationId: area.stage.member.organisationId, permissions })
  const webhook = (url: string, subscribedEventKeys = ['invoice:paid']) =>
    createWebhookRow(area.stage.dataSource, {
      organisationId: area.stage.member.organisationId,
      url,
      subscribedEventKeys,
    })
  const stored = async (url: string) => {
    const found = await area.stage.dataSource.query<{ keys: string[]; enabled: boolean; gone: boolean }[]>(
      'SELECT subscribed_event_keys AS keys, enabled, deleted_at IS NOT NULL AS gone FROM webhook WHERE url = $1',
      [url],
    )
    return found[0]
  }

  it('creates one with keys found by their meaning', async () => {
    const { page } = await area.signIn()
    await page.getByRole('button', { name: 'New webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill('https://hooks.customer.com/created')
    await dialog.getByLabel('Search event keys').fill('barrier LONG')
    await dialog.getByText('1 of 90 event keys').waitFor()
    await dialog.getByLabel('accessPoint:openTooLong').check()
    await dialog.getByLabel('Search event keys').fill('invoice:paid')
    await dialog.getByLabel('invoice:paid').check()
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByRole('heading', { name: 'Signing secret' }).waitFor()
    expect(await stored('https://hooks.customer.com/created')).to.deep.equal({
      keys: ['accessPoint:openTooLong', 'invoice:paid'],
      enabled: true,
      gone: false,
    })
  })

  it('shows what the API refuses at its field', async () => {
    const { page } = await area.signIn()
    await page.getByRole('button', { name: 'New webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill('https://user:password@hooks.customer.com/')
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await page.locator('#url-problem').waitFor()
    expect(await page.locator('#keys-problem').innerText()).to.equal('must have at least 1 item')
    expect(await dialog.getByLabel('URL').getAttribute('aria-invalid')).to.equal('true')
  })

  it('offers a member only the keys that it may subscribe to, and not all events', async () => {
    const { page } = await area.signIn(await memberWith(['webhook:read', 'webhook:manage', 'invoice:read']))
    await page.getByRole('button', { name: 'New webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('5 of 5 event keys').waitFor()
    const keys = await dialog.locator('.options .mono').allInnerTexts()
    expect(keys.every((key) => key.startsWith('invoice:'))).to.equal(true)
    expect(await dialog.getByLabel('All events').count()).to.equal(0)
  })

  it('says at the keys which permission is missing, where it was lost meanwhile', async () => {
    const member = await memberWith(['webhook:read', 'webhook:manage', 'invoice:read'])
    const { page } = await area.signIn(member)
    await page.getByRole('button', { name: 'New webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill('https://hooks.customer.com/refused')
    await dialog.getByLabel('invoice:paid').check()
    await area.stage.dataSource.query(
      `UPDATE member SET permissions = '{webhook:read,webhook:manage}' WHERE id = $1`,
      [member.memberId],
    )
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await page.locator('#keys-problem').waitFor()
    expect(await page.locator('#keys-problem').innerText()).to.equal('You lack: invoice:read.')
    expect(await stored('https://hooks.customer.com/refused')).to.equal(undefined)
  })

  it('changes, switches off and deletes one, after asking', async () => {
    await webhook('https://hooks.customer.com/changed')
    const { page } = await area.signIn()
    const card = page.getByRole('listitem').filter({ hasText: '/changed' })
    await card.getByRole('switch').click()
    await card.getByText('Switched off').waitFor()
    await card.getByRole('link', { name: '/changed' }).click()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('dialog').getByLabel('All events').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('All events, those to come too.').waitFor()
    expect(await stored('https://hooks.customer.com/changed')).to.deep.equal({
      keys: ['*'],
      enabled: false,
      gone: false,
    })

    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect((await stored('https://hooks.customer.com/changed'))?.gone).to.equal(false)
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete webhook' }).click()
    await page.getByText('Webhook deleted.').waitFor()
    expect((await stored('https://hooks.customer.com/changed'))?.gone).to.equal(true)
  })

  it('shows the signing secret when it is asked for, and copies it', async () => {
    const { id, signingSecret } = await webhook('https://hooks.customer.com/secret')
    const { page } = await area.signIn(area.stage.member, {
      path: `/developer?webhook=${id}`,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const reveal = page.getByRole('button', { name: 'Reveal' })
    await reveal.waitFor()
    expect(await page.content()).to.not.include(signingSecret)
    await reveal.click()
    await page.getByText(signingSecret).waitFor()
    await page.getByRole('button', { name: 'Copy signing secret' }).click()
    await eventually(async () =>
      expect(await page.evaluate('navigator.clipboard.readText()')).to.equal(signingSecret),
    )
    await page.getByRole('button', { name: 'Hide' }).click()
    await reveal.waitFor()
    expect(await page.content()).to.not.include(signingSecret)
  })

  it('keeps the secret from members that may not change the webhook, on the page and behind it', async () => {
    const { id, organisationId } = {
      ...(await webhook('https://hooks.customer.com/kept')),
      ...area.stage.member,
    }
    const { page } = await area.signIn(await memberWith(['webhook:read', 'invoice:read']), {
      path: `/developer?webhook=${id}`,
    })
    await page.getByText('You lack: webhook:manage.').waitFor()
    for (const name of ['Reveal', 'Edit', 'Delete', 'Force retry', 'Send a test event'])
      expect(await page.getByRole('button', { name }).count(), name).to.equal(0)
    expect(await page.getByRole('switch').isDisabled()).to.equal(true)
    const asked = `fetch('/api/orgs/${organisationId}/webhooks/${id}/signing-secret').then(({ status }) => status)`
    expect(await page.evaluate(asked)).to.equal(403)
  })

  it('learns what others do without being loaded again', async () => {
    const { page } = await area.signIn()
    await page.getByRole('switch').first().waitFor()
    await webhook('https://hooks.customer.com/of-somebody-else')
    await page.getByRole('link', { name: '/of-somebody-else' }).waitFor()
  })
})
