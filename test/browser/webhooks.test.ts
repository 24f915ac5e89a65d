import { expect } from 'chai'
import { createMember, createWebhookRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

describe('managing webhooks in the developer area', () => {
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
    await page.getByRole('heading', { name: 'Latest attempt' }).waitFor()
    expect(await stored('https://hooks.customer.com/created')).to.deep.equal({
      keys: ['accessPoint:openTooLong', 'invoice:paid'],
      enabled: true,
      gone: false,
    })
  })

  it('shows an error of the API at its field', async () => {
    const { page } = await area.signIn()
    await page.getByRole('button', { name: 'New webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill('https://user:password@hooks.customer.com/')
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await page.locator('#url-problem').waitFor()
    expect(await page.locator('#keys-problem').innerText()).to.equal('Choose at least one event key.')
    expect(await dialog.getByLabel('URL').getAttribute('aria-invalid')).to.equal('true')
    await dialog.getByLabel('invoice:paid').check()
    await page.locator('#keys-problem').waitFor({ state: 'detached' })
    await dialog.getByLabel('URL').fill('https://hooks.customer.com/')
    await page.locator('#url-problem').waitFor({ state: 'detached' })
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

  it('shows at the keys which permission is missing, where it was lost meanwhile', async () => {
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

  it('changes, disables and deletes one, after confirmation', async () => {
    await webhook('https://hooks.customer.com/changed')
    const { page } = await area.signIn()
    const row = page.getByRole('row').filter({ hasText: '/changed' })
    await row.getByRole('switch').click()
    await page.getByRole('dialog').getByText('No delivery waits for a retry.').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Switch off' }).click()
    await row.getByText('Switched off').waitFor()
    await row.getByRole('link', { name: '/changed' }).click()
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('dialog').getByLabel('All events').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('All events, those to come too.').waitFor()
    expect(await stored('https://hooks.customer.com/changed')).to.deep.equal({
      keys: ['*'],
      enabled: false,
      gone: false,
    })

    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect((await stored('https://hooks.customer.com/changed'))?.gone).to.equal(false)
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete webhook' }).click()
    await page.getByText('Webhook deleted.').waitFor()
    expect((await stored('https://hooks.customer.com/changed'))?.gone).to.equal(true)
  })

  it('says how a deletion ended whose dialog was closed, and leaves the page that is shown then', async () => {
    const { id } = await webhook('https://hooks.customer.com/deleted-late')
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${id}&tab=settings` })
    let isUp = false
    let release = (): void => undefined
    await page.route(new RegExp(`${id}$`), async (route) => {
      await new Promise<void>((resolve) => {
        release = resolve
      })
      await (isUp ? route.continue() : route.abort())
    })
    const dialog = page.getByRole('dialog')
    for (const outcome of ['Posthorn cannot be reached.', 'Webhook deleted.']) {
      await page.getByRole('button', { name: 'Delete', exact: true }).click()
      await dialog.getByRole('button', { name: 'Delete webhook' }).click()
      await dialog.getByRole('button', { name: 'Close' }).click()
      if (isUp) await page.getByRole('link', { name: 'Catalogue' }).click()
      release()
      await page.getByText(outcome).waitFor()
      isUp = true
    }
    expect(new URL(page.url()).search).to.equal('?view=catalogue')
  })

  it('has a key that is gone from the catalogue taken out before another subscription is saved', async () => {
    const url = 'https://hooks.customer.com/gone'
    const { id } = await webhook(url, ['order:shipped', 'invoice:paid'])
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${id}&tab=settings` })
    await page.getByRole('button', { name: 'Edit' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('No longer in the catalogue').waitFor()
    await dialog.getByLabel('invoice:created').check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('There is no event key "order:shipped".').waitFor()
    await dialog.getByLabel('order:shipped').uncheck()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Changes saved.').waitFor()
    expect((await stored(url))?.keys).to.have.members(['invoice:paid', 'invoice:created'])
  })

  it('leaves a webhook with a key that is gone from the catalogue to members with full access', async () => {
    const { id } = await webhook('https://hooks.customer.com/unknown', ['order:shipped'])
    const { page } = await area.signIn(await memberWith(['webhook:read', 'webhook:manage', 'order:read']), {
      path: `/developer?webhook=${id}&tab=settings`,
    })
    await page.getByText('You lack: full access.').waitFor()
    expect(await page.getByRole('button', { name: 'Edit' }).count()).to.equal(0)
  })

  it('shows the signing secret on request, and copies it', async () => {
    const { id, signingSecret } = await webhook('https://hooks.customer.com/secret')
    const { page } = await area.signIn(area.stage.member, {
      path: `/developer?webhook=${id}&tab=settings`,
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
      path: `/developer?webhook=${id}&tab=settings`,
    })
    await page.getByText('You lack: webhook:manage.').waitFor()
    for (const name of ['Reveal', 'Edit', 'Delete', 'Force retry', 'Send a test event'])
      expect(await page.getByRole('button', { name }).count(), name).to.equal(0)
    expect(await page.getByRole('switch').isDisabled()).to.equal(true)
    const asked = `fetch('/api/orgs/${organisationId}/webhooks/${id}/signing-secret').then(({ status }) => status)`
    expect(await page.evaluate(asked)).to.equal(403)
  })

  it('shows the changes of others without a reload', async () => {
    const { page } = await area.signIn()
    await page.getByRole('switch').first().waitFor()
    await webhook('https://hooks.customer.com/of-somebody-else')
    await page.getByRole('link', { name: '/of-somebody-else' }).waitFor()
  })

  it('keeps what others changed while its form was open', async () => {
    const url = 'https://hooks.customer.com/edited-by-two'
    const { id } = await webhook(url, ['invoice:paid', 'payment:created'])
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${id}&tab=settings` })
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByRole('dialog').getByText('2 chosen').waitFor()
    await area.stage.dataSource.query(
      `UPDATE webhook SET enabled = false, subscribed_event_keys = '{invoice:paid}' WHERE id = $1`,
      [id],
    )
    await page.getByRole('dialog').getByLabel('Name').fill('Of the accounts')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Changes saved.').waitFor()
    expect(await stored(url)).to.deep.include({ enabled: false, keys: ['invoice:paid'] })
  })

  it('is chosen keys for with the keyboard: chosen ones first, and one stop of the Tab key', async () => {
    const url = 'https://hooks.customer.com/keyboard'
    const { id } = await webhook(url, ['invoice:paid', 'payment:created'])
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${id}&tab=settings` })
    await page.getByRole('button', { name: 'Edit' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('2 chosen').waitFor()
    const keys = await dialog.locator('.options .mono').allInnerTexts()
    expect(keys.slice(0, 2).sort()).to.deep.equal(['invoice:paid', 'payment:created'])
    await dialog.getByLabel('Search event keys').focus()
    await page.keyboard.press('Tab')
    const focused = page.locator(':focus')
    expect(await focused.isChecked(), 'a chosen key').to.equal(true)
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Space')
    await dialog.getByText('3 chosen').waitFor()
    await page.keyboard.press('Tab')
    expect(await focused.getAttribute('name')).to.equal('enabled')
    for (let stops = 0; (await focused.innerText()) !== 'Save'; stops++) {
      expect(stops).to.be.below(3)
      await page.keyboard.press('Tab')
    }
    await page.keyboard.press('Enter')
    await page.getByText('Changes saved.').waitFor()
    expect((await stored(url))?.keys)
      .to.have.length(3)
      .and.to.include(keys[2])
  })

  it('keeps the words "All events" together in a narrow window', async () => {
    const { page } = await area.signIn(area.stage.member, { viewport: { width: 375, height: 800 } })
    await page.getByRole('button', { name: 'New webhook' }).click()
    const words = page.getByRole('dialog').getByText('All events', { exact: true })
    expect((await words.boundingBox())?.height).to.be.below(30)
  })

  it('gives a webhook a name that its page, its title and its dialogs show', async () => {
    const { page } = await area.signIn()
    await page.getByRole('button', { name: 'New webhook' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill('https://hooks.customer.com/named')
    await dialog.getByLabel('Name').fill('Booking system')
    await dialog.getByLabel('invoice:paid').check()
    await dialog.getByRole('button', { name: 'Create webhook' }).click()
    await page.getByRole('heading', { level: 1, name: 'Booking system' }).waitFor()
    await page.getByText('hooks.customer.com/named').waitFor()
    for (const tab of ['Overview', 'Deliveries', 'Incidents', 'Settings']) {
      await page.getByRole('navigation', { name: 'Booking system' }).getByRole('link', { name: tab }).click()
      await eventually(async () => expect(await page.title()).to.equal(`${tab} · Booking system · Posthorn`))
    }
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await dialog.getByRole('heading', { name: 'Delete Booking system?' }).waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'Webhooks' }).first().click()
    await page.getByLabel('Search webhooks').fill('booking')
    await page.getByRole('rowheader', { name: 'Booking system' }).waitFor()
  })
})
