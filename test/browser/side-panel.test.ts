import { expect } from 'chai'
import type { Locator, Page } from 'playwright-core'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'
import { faultsOf, useDeveloperArea } from '../helpers/browser/browser.ts'

const WIDE = { width: 1440, height: 900 }
const NARROW = { width: 1024, height: 800 }

describe('a list and its detail side by side, and the keys of the developer area', () => {
  const area = useDeveloperArea()
  let webhookId: string
  /** Newest first, as in the list. */
  let ids: string[]

  before(async () => {
    webhookId = (await createCommentWebhook(area, '/comments', false)).id
    ids = (await writeBacklogOf(area, webhookId, 'failed', 23)).sort().reverse()
  })

  const listPath = (more = '') => `/developer?webhook=${webhookId}&tab=deliveries${more}`
  const open = async (path = listPath(), viewport = WIDE) => {
    const { page } = await area.signIn(area.stage.member, { path, viewport })
    await rowOf(page, 0).waitFor()
    return page
  }
  const rowOf = (page: Page, index: number): Locator =>
    page
      .getByRole('table', { name: 'Deliveries' })
      .getByRole('row')
      .filter({ hasText: shortOf(index) })
  const shortOf = (index: number) => `…${ids[index]!.slice(-8)}`
  const linkOf = (page: Page, index: number) => rowOf(page, index).getByRole('link')
  const panelOf = (page: Page) => page.getByRole('region', { name: 'Delivery', exact: true })
  const shows = (page: Page, index: number) => panelOf(page).getByText(ids[index]!, { exact: true }).waitFor()
  const focused = (page: Page) =>
    page.evaluate<string>('document.activeElement.closest("tr")?.innerText ?? ""')
  const parameter = (page: Page, name: string) => new URL(page.url()).searchParams.get(name)

  it('opens a delivery beside its list in a wide window, in the address; back and Close lead to the list', async () => {
    const page = await open()
    await linkOf(page, 1).click()
    await shows(page, 1)
    expect(await linkOf(page, 0).isVisible()).to.equal(true)
    expect([parameter(page, 'tab'), parameter(page, 'delivery')]).to.deep.equal(['deliveries', ids[1]!])
    expect(await page.locator(':focus').getAttribute('aria-label')).to.equal('Delivery')
    await linkOf(page, 3).click()
    await shows(page, 3)
    await page.goBack()
    await panelOf(page).waitFor({ state: 'detached' })
    await rowOf(page, 3).waitFor()
    await linkOf(page, 2).click()
    await shows(page, 2)
    await page.reload()
    await shows(page, 2)
    await rowOf(page, 2).waitFor()
    await panelOf(page).getByRole('button', { name: 'Close' }).click()
    await panelOf(page).waitFor({ state: 'detached' })
    expect(parameter(page, 'delivery')).to.equal(null)
    expect(await focused(page)).to.include(shortOf(2))
  })

  it('keeps the filter and the page of the list with what is beside it', async () => {
    const page = await open(listPath('&state=failed'))
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByText('Page 2').waitFor()
    await linkOf(page, 21).click()
    await shows(page, 21)
    await page.reload()
    await shows(page, 21)
    await page.getByText('Page 2').waitFor()
    expect(await page.getByLabel('State').inputValue()).to.equal('failed')
    await page.getByRole('button', { name: 'Newer' }).click()
    await rowOf(page, 0).waitFor()
  })

  it('gives a delivery the page for itself in a narrow window, and under an address without a tab', async () => {
    const page = await open(listPath(), NARROW)
    await linkOf(page, 1).click()
    await page.getByRole('heading', { level: 1, name: 'comment:created' }).waitFor()
    expect(parameter(page, 'tab')).to.equal(null)
    await page.goBack()
    await rowOf(page, 1).waitFor()
    await page.setViewportSize(WIDE)
    await page.goto(`${area.posthorn.url}/developer?webhook=${webhookId}&delivery=${ids[1]!}`)
    await page.getByRole('heading', { level: 1, name: 'comment:created' }).waitFor()
    expect(await page.getByRole('table', { name: 'Deliveries' }).count()).to.equal(0)
    await page.setViewportSize(NARROW)
    await page.goto(`${area.posthorn.url}${listPath(`&delivery=${ids[1]!}`)}`)
    await page.getByRole('heading', { level: 1, name: 'comment:created' }).waitFor()
  })

  it('moves by j and k, opens by Enter and o, follows, and closes by Escape', async () => {
    const page = await open()
    await page.keyboard.press('j')
    expect(await focused(page)).to.include(shortOf(0))
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    expect(await focused(page)).to.include(shortOf(1))
    await page.keyboard.press('o')
    await shows(page, 1)
    await page.keyboard.press('j')
    await shows(page, 2)
    expect(await focused(page)).to.include(shortOf(2))
    await page.keyboard.press('Escape')
    await panelOf(page).waitFor({ state: 'detached' })
    expect(await focused(page)).to.include(shortOf(2))
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await shows(page, 1)
    // The focus is in the panel; the keys go on from the row that is shown.
    await page.keyboard.press('k')
    await shows(page, 0)
    await page.keyboard.press('k')
    expect(await focused(page)).to.include(shortOf(0))
  })

  it('moves and opens in the lists of webhooks and events too, and in a narrow window', async () => {
    const { page } = await area.signIn(area.stage.member, { viewport: NARROW })
    await page.getByRole('table', { name: 'Webhooks' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('o')
    await page.getByRole('link', { name: 'Overview' }).waitFor()
    await page.goto(`${area.posthorn.url}/developer?view=events`)
    await page.getByRole('table', { name: 'Events' }).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'comment:created' }).waitFor()
    await page.goto(area.posthorn.url + listPath())
    await rowOf(page, 0).waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('o')
    await page.getByRole('heading', { level: 1, name: 'comment:created' }).waitFor()
  })

  it('focuses the search by /, also where the filters are folded away', async () => {
    const page = await open()
    await page.keyboard.press('/')
    expect(await page.locator(':focus').getAttribute('type')).to.equal('search')
    await page.goto(`${area.posthorn.url}/developer`)
    await page.getByLabel('Search webhooks').waitFor()
    await page.keyboard.press('/')
    expect(await page.locator(':focus').getAttribute('aria-label')).to.equal('Search webhooks')
    await page.setViewportSize({ width: 375, height: 800 })
    await page.goto(area.posthorn.url + listPath())
    await rowOf(page, 0).waitFor()
    await page.keyboard.press('/')
    await page.locator('input[type=search]:focus').waitFor()
  })

  it('does nothing while the user types, with a modifier, or in a dialog', async () => {
    const page = await open()
    const search = page.getByRole('searchbox')
    await search.pressSequentially('jko/?')
    expect(await search.inputValue()).to.equal('jko/?')
    await search.fill('')
    await page.getByLabel('State').focus()
    await page.keyboard.press('j')
    expect(await focused(page)).to.equal('')
    await page.getByRole('heading', { level: 1 }).focus()
    for (const key of ['Control+j', 'Alt+j', 'Meta+j']) await page.keyboard.press(key)
    expect(await focused(page)).to.equal('')
    await linkOf(page, 0).click()
    await shows(page, 0)
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    expect(await panelOf(page).count(), 'one Escape closes one thing').to.equal(1)
    await shows(page, 0)
  })

  it('lists the keys by ? and by a button, and switches them off until they are switched on', async () => {
    const page = await open()
    await page.keyboard.press('?')
    const dialog = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
    for (const words of ['Next row', 'Previous row', 'Search', 'This help'])
      await dialog.getByText(words).waitFor()
    await dialog.getByRole('checkbox').uncheck()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.reload()
    await rowOf(page, 0).waitFor()
    await page.keyboard.press('j')
    expect(await focused(page)).to.equal('')
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
    await dialog.getByRole('checkbox').check()
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    expect(await focused(page)).to.include(shortOf(0))
  })

  it('has no serious finding of axe and no overflow in either theme, at 1440, 1280 and 1024 px', async () => {
    const findings: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await area.signIn(area.stage.member, { colorScheme, bypassCSP: true })
      const judge = async (name: string) => {
        findings.push(...(await faultsOf(page, `${colorScheme} ${name}`)))
      }
      for (const width of [1440, 1280, 1024]) {
        await page.setViewportSize({ width, height: 900 })
        await page.goto(area.posthorn.url + listPath(`&delivery=${ids[2]!}`))
        await page.getByText(ids[2]!, { exact: true }).waitFor()
        await judge(String(width))
      }
      await page.keyboard.press('?')
      await page.getByRole('dialog').waitFor()
      await judge('help')
    }
    expect(findings).to.deep.equal([])
  })
})
