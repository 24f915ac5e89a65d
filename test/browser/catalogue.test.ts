import { expect } from 'chai'
import { createMember } from '../helpers/database/factories.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

describe('the catalogue and the audit trail in the developer area', () => {
  const area = useDeveloperArea()
  const memberWith = (permissions: string[]) =>
    createMember(area.stage.dataSource, { organisationId: area.stage.member.organisationId, permissions })

  it('shows every event key with its permission, schema and example, and finds it', async () => {
    const { page } = await area.signIn(area.stage.member, { path: '/developer?view=catalogue' })
    await page.getByText(/^(\d+) of \1 event keys$/).waitFor()
    await page.getByLabel('Search event keys').fill('invoice paid')
    await page.getByRole('listitem').nth(1).waitFor({ state: 'detached' })
    await page.getByText('invoice:paid').click()
    await page.getByRole('region', { name: 'Example of invoice:paid' }).waitFor()
    await page.getByText('JSON schema').click()
    await page.getByRole('region', { name: 'JSON schema' }).waitFor()
    expect(new URL(page.url()).search).to.equal('?view=catalogue&q=invoice+paid&key=invoice%3Apaid')
    await page.reload()
    await page.getByRole('region', { name: 'Example of invoice:paid' }).waitFor()
    expect(await page.title()).to.equal('invoice:paid · Catalogue · Posthorn')
  })

  it('shows the fields of a schema that refers to itself', async () => {
    const { page } = await area.signIn()
    const rows = { type: 'array', items: { $ref: '#/$defs/rows' } }
    const either = { anyOf: [{ $ref: '#/$defs/either' }, { type: 'null' }] }
    const properties = {
      parent: { $ref: '#' },
      rows: { $ref: '#/$defs/rows' },
      either: { $ref: '#/$defs/either' },
      named: { $ref: '#name' },
    }
    const schema = { type: 'object', properties, $defs: { rows, either, name: { $anchor: 'name' } } }
    await page.route('**/api/event-keys', async (route) => {
      const response = await route.fetch()
      const { data } = (await response.json()) as { data: object[] }
      await route.fulfill({ response, json: { data: data.map((key) => ({ ...key, schema })) } })
    })
    await page.goto(new URL('/developer?view=catalogue&key=invoice:paid', area.posthorn.url).href)
    await page.locator('.schema dt').first().waitFor()
    expect(await page.locator('.schema dt').allInnerTexts()).to.deep.equal([
      'parent object optional',
      'rows list of the same optional',
      'either the same or null optional',
      'named any optional',
    ])
  })

  it('sends the example of a key as a test to the webhook that is chosen, once for a double click', async () => {
    const { stage } = area
    stage.answerWith(() => 204)
    const { page } = await area.signIn(stage.member, { path: '/developer?view=catalogue&key=invoice:paid' })
    await page.getByLabel('Send this example as a test to').selectOption(stage.webhookId)
    const sent: string[] = []
    page.on('request', (request) => {
      if (request.url().endsWith('/test')) sent.push(request.url())
    })
    await page.getByRole('button', { name: 'Send this example as a test' }).dblclick()
    await page.getByRole('heading', { level: 1, name: 'invoice:paid' }).waitFor()
    await page.locator('.timeline').getByText('HTTP 204').waitFor()
    expect(sent).to.have.length(1)
  })

  it('sends no example of a key that the member may not see', async () => {
    const member = await memberWith(['webhook:read', 'webhook:manage', 'customer:read'])
    const { page } = await area.signIn(member, { path: '/developer?view=catalogue&key=invoice:paid' })
    await page.getByText('Only members with invoice:read may send this example.').waitFor()
    expect(await page.getByRole('button', { name: 'Send this example' }).count()).to.equal(0)
  })

  it('says in the audit trail who did what and when, in pages', async () => {
    const { stage } = area
    const { page } = await area.signIn(stage.member, {
      path: `/developer?webhook=${stage.webhookId}&tab=settings`,
    })
    await page.getByRole('button', { name: 'Reveal' }).click()
    await page.getByRole('button', { name: 'Hide' }).waitFor()
    await page.getByRole('link', { name: 'By whom' }).click()
    const row = page.getByRole('row').filter({ hasText: 'Read a signing secret' }).first()
    expect(await row.getByRole('cell').nth(1).innerText()).to.equal('Test Member (you)')
    await row.getByRole('link', { name: '127.0.0.1' }).waitFor()
    await stage.dataSource.query(
      `INSERT INTO audit_entry (id, organisation_id, at, member_id, action, webhook_id, details)
       SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, $1, now() - n * interval '1 minute', $2, 'webhook.updated', $3, '{}'
         FROM generate_series(1, 60) n`,
      [stage.member.organisationId, stage.member.memberId, stage.webhookId],
    )
    await page.reload()
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByRole('button', { name: 'Older', disabled: true }).waitFor()
    await page.getByRole('row').nth(10).waitFor()
    await page.goBack()
    await row.waitFor()
  })

  it('shows of a changed list what came and went, filtered by member and action', async () => {
    const { stage } = area
    const { organisationId, apiKey, memberId } = stage.member
    const webhookPath = `/api/orgs/${organisationId}/webhooks/${stage.webhookId}`
    for (const subscribedEventKeys of [
      ['invoice:paid', 'invoice:created'],
      ['invoice:paid', 'payment:created'],
    ])
      await area.posthorn.call('PATCH', webhookPath, { apiKey, body: { subscribedEventKeys } })
    const { page } = await area.signIn(stage.member, { path: '/developer?view=audit' })
    await page.getByText('event keys + payment:created − invoice:created').waitFor()
    await page.getByRole('combobox', { name: /^Action/ }).selectOption({ label: 'Signed in' })
    await page
      .getByRole('row')
      .filter({ hasText: 'Changed a webhook' })
      .first()
      .waitFor({ state: 'detached' })
    await page.getByRole('row').filter({ hasText: 'Signed in' }).first().waitFor()
    await page.getByRole('combobox', { name: /^Member/ }).selectOption(memberId)
    await page.getByRole('row').nth(1).waitFor()
    expect(new URL(page.url()).search).to.equal(`?view=audit&memberId=${memberId}&action=session.opened`)
    await page.goto(`${area.posthorn.url}/developer?view=audit&memberId=mem_nobody`)
    await page.getByText('No entries match the filter.').waitFor()
  })

  it('reads again what the audit trail, API keys and tests need after an answer that failed', async () => {
    const { page } = await area.signIn()
    await page.clock.install()
    for (const [view, path] of [
      ['audit', 'audit'],
      ['api-keys', 'api-keys'],
      ['catalogue&key=invoice:paid', 'overview'],
    ] as const) {
      let count = 0
      await page.route(new RegExp(`/${path}(\\?|$)`), (route) => {
        count++
        return count === 1 ? route.abort() : route.continue()
      })
      await page.goto(new URL(`/developer?view=${view}`, area.posthorn.url).href)
      await page.getByText('Posthorn cannot be reached.').waitFor()
      expect(await page.getByText('Switch a webhook on').count()).to.equal(0)
      await page.clock.runFor(60_000)
      await page.getByText('Posthorn cannot be reached.').waitFor({ state: 'detached' })
    }
  })

  it('leaves the audit trail to members with full access', async () => {
    const { page } = await area.signIn(await memberWith(['webhook:read']), { path: '/developer?view=audit' })
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('link', { name: 'Audit' }).count()).to.equal(0)
  })
})
