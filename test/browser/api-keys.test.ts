import { expect } from 'chai'
import { fillIn, useDeveloperArea } from '../helpers/browser/browser.ts'
import { createMember } from '../helpers/database/factories.ts'

describe('API keys in the developer area', () => {
  const area = useDeveloperArea()

  it('are made, shown once, and sign out the browsers that use them once they are revoked', async () => {
    const { organisationId } = area.stage.member
    const member = await createMember(area.stage.dataSource, {
      organisationId,
      permissions: ['webhook:read'],
    })
    const { page } = await area.signIn(member)
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('button', { name: 'New API key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('laptop')
    expect(await dialog.getByLabel('Expires').inputValue()).to.equal('90')
    await dialog.getByRole('button', { name: 'Create' }).click()
    const key = await dialog.locator('code').innerText()
    expect(key).to.match(/^phk_\w{43}$/)
    await dialog.getByRole('button', { name: 'Copy API key' }).click()
    await dialog.getByRole('status').getByText('API key').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    const row = page.getByRole('table', { name: 'API keys' }).getByRole('row', { name: 'laptop' })
    await row.getByText(`${key.slice(0, 8)}…`).waitFor()
    expect(await page.content()).not.to.include(key)

    const { page: other } = await area.visit()
    await fillIn(other, key)
    await other.getByRole('button', { name: 'Sign out' }).waitFor()
    await row.getByRole('button', { name: 'Revoke' }).click()
    await dialog.getByRole('button', { name: 'Revoke API key' }).click()
    await row.waitFor({ state: 'detached' })
    await other.getByRole('button', { name: 'Sign in' }).waitFor()
  })

  it('are shown also where the form was closed before they came', async () => {
    const { page } = await area.signIn(area.stage.member, { path: '/developer?view=api-keys' })
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route(/\/api-keys$/, async (route) => {
      if (route.request().method() === 'POST') await held
      await route.continue()
    })
    await page.getByRole('button', { name: 'New API key' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('closed early')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('button', { name: 'Close' }).waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    release()
    await dialog.getByText('it is not shown again').waitFor()
    expect(await dialog.locator('code').innerText()).to.match(/^phk_/)
  })
})
