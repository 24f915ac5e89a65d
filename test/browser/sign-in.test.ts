import { expect } from 'chai'
import { createMember } from '../helpers/database/factories.ts'
import { fillIn, useDeveloperArea } from '../helpers/browser/browser.ts'

describe('signing in to the developer area', () => {
  const area = useDeveloperArea()

  it('accepts a key and shows whose webhooks they are', async () => {
    const { page } = await area.signIn()
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    expect(await page.getByRole('banner').innerText())
      .to.include('Camping Test')
      .and.include('Test Member')
    expect(await page.title()).to.equal('Webhooks · Posthorn')
  })

  it('refuses an invalid key with a message, and asks again', async () => {
    const { page } = await area.visit()
    await fillIn(page, 'phk_no_such_key_000000000')
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).to.equal(
      'This key is not valid. Check that it is complete and not revoked.',
    )
    await fillIn(page, area.stage.member.apiKey)
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
  })

  it('stores the key nowhere in the browser, and the session where no script reads it', async () => {
    const { page } = await area.signIn()
    const { apiKey } = area.stage.member
    const state = await page.context().storageState()
    expect(state.origins).to.deep.equal([])
    const [cookie, ...others] = state.cookies
    expect(others).to.deep.equal([])
    expect(cookie).to.include({ httpOnly: true, sameSite: 'Strict', path: '/' })
    expect(cookie?.value).to.not.include(apiKey)
    expect(await page.evaluate('document.cookie')).to.equal('')
    expect(
      await page.evaluate('document.documentElement.outerHTML + JSON.stringify(history.state)'),
    ).to.not.include(apiKey)
  })

  it('survives a reload, until sign-out', async () => {
    const { page } = await area.signIn()
    await page.reload()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You are signed out.').waitFor()
    await page.reload()
    await page.getByLabel('API key').waitFor()
    expect(await page.context().cookies()).to.deep.equal([])
  })

  it('outlives a reload while the service is unavailable', async () => {
    const { page } = await area.signIn()
    const bodies = ['Bad Gateway', '{"message":"no upstream"}']
    await page.route('**/api/session', (route) => {
      const body = bodies.shift()
      return body === undefined ? route.continue() : route.fulfill({ status: 502, body })
    })
    await page.reload()
    await page.getByText('Trying again').waitFor()
    expect(await page.getByLabel('API key').count()).to.equal(0)
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
  })

  it('ends at once on an open page when the key is revoked', async () => {
    const { organisationId } = area.stage.member
    const member = await createMember(area.stage.dataSource, { organisationId })
    const { page } = await area.signIn(member)
    await area.stage.dataSource.query('UPDATE api_key SET revoked_at = now() WHERE member_id = $1', [
      member.memberId,
    ])
    await page.getByText('Your session has ended. Sign in again.').waitFor()
  })

  it('outlasts a late answer to a request of the session before', async () => {
    const { page } = await area.signIn(area.stage.member, {
      path: `/developer?webhook=${area.stage.webhookId}`,
    })
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route('**/test', async (route) => {
      await held
      const json = { title: 'Unauthorized', detail: 'Too late.', status: 401, code: 'unauthenticated' }
      await route.fulfill({ status: 401, json })
    })
    await page.getByRole('button', { name: 'Send a test event' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await fillIn(page, area.stage.member.apiKey)
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    release()
    await page.getByText('Too late.').waitFor()
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).to.equal(1)
  })

  it('leads from the link of a mail to its webhook', async () => {
    const { webhookId } = area.stage
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${webhookId}` })
    await page.getByRole('heading', { name: 'Latest attempt' }).waitFor()
    expect(await page.getByRole('heading', { level: 1 }).innerText()).to.include(
      new URL(area.stage.receiver.url).host,
    )
  })

  it('needs no mouse, nor do the other pages', async () => {
    const { page } = await area.visit()
    await page.getByLabel('API key').focus()
    await page.keyboard.type(area.stage.member.apiKey)
    await page.keyboard.press('Enter')
    const focused = page.locator(':focus')
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    await page.getByRole('switch').waitFor()
    await page.getByRole('button', { name: 'New webhook' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'New webhook' }).waitFor()
    expect(await focused.getAttribute('name'), 'the first field has the focus').to.equal('url')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    expect(await focused.innerText(), 'the focus is back').to.equal('New webhook')
  })
})
