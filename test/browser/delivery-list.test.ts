import { expect } from 'chai'
import type { Page, Request } from 'playwright-core'
import { writeBacklog, writeFailedAttempts } from '../helpers/deliveries/backlog.ts'
import { setRow } from '../helpers/deliveries/set-row.ts'
import { createMember, createWebhookRow } from '../helpers/database/factories.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { eventually } from '../helpers/eventually.ts'

describe('the deliveries of a webhook in the developer area', () => {
  const area = useDeveloperArea()

  const newWebhook = async (enabled = true) =>
    (
      await createWebhookRow(area.stage.dataSource, {
        organisationId: area.stage.member.organisationId,
        url: area.stage.receiver.url.replace('/hook', '/other'),
        subscribedEventKeys: ['comment:created', 'invoice:paid'],
        enabled,
      })
    ).id
  const backlog = (
    webhookId: string,
    state: 'failed' | 'waiting',
    count: number,
    eventKey = 'comment:created',
  ) =>
    writeBacklog(area.stage.dataSource, {
      organisationId: area.stage.member.organisationId,
      webhookId,
      state,
      count,
      eventKey,
    })
  const at = (webhookId: string, filter = '') => ({
    path: `/developer?webhook=${webhookId}&tab=deliveries${filter}`,
  })
  const rowsOf = (page: Page) =>
    page.getByRole('table', { name: 'Deliveries' }).locator('tbody').getByRole('row')
  const bulkOf = (page: Page) => page.getByRole('region', { name: 'Selected deliveries', exact: true })

  it('shows key, state, attempt, status, duration, id, time and last error in a table', async () => {
    const id = await newWebhook(false)
    const deliveryIds = await backlog(id, 'waiting', 1)
    await writeFailedAttempts(area.stage.dataSource, deliveryIds, { statusCode: 503 })
    const { page } = await area.signIn(area.stage.member, at(id))
    const cells = rowsOf(page).first().getByRole('cell')
    await rowsOf(page).first().waitFor()
    const texts = (await cells.allInnerTexts()).map((text) => text.trim())
    expect(texts.slice(1, 3)).to.satisfy(([key = '', state = '']: string[]) => {
      return key === 'comment:created' && state.startsWith('Waiting for retry')
    })
    expect(texts.slice(3, 6)).to.deep.equal(['7 of 10', '503', '211 ms'])
    expect(texts[6]).to.equal(`…${deliveryIds[0]!.slice(-8)}`)
    expect(texts[8]).to.equal('The endpoint answered with HTTP 503.')
  })

  it('filters by state, key, status code, time and id, keeps the filter in the address, and clears it', async () => {
    const id = await newWebhook(false)
    const paid = await backlog(id, 'failed', 2, 'invoice:paid')
    const unanswered = await backlog(id, 'failed', 3)
    await backlog(id, 'waiting', 4)
    await writeFailedAttempts(area.stage.dataSource, unanswered, { statusCode: 502, number: 10 })
    const { page } = await area.signIn(area.stage.member, at(id))
    const shows = async (count: number) => {
      if (count > 0)
        await rowsOf(page)
          .nth(count - 1)
          .waitFor()
      await rowsOf(page).nth(count).waitFor({ state: 'detached' })
    }
    const parameter = (name: string) => new URL(page.url()).searchParams.get(name)
    await shows(9)
    await page.getByLabel('State').selectOption('Permanently failed')
    await shows(5)
    await page.getByLabel('Event key').fill('invoice:paid')
    await page.getByLabel('Event key').press('Enter')
    await shows(2)
    expect([parameter('state'), parameter('eventKey')]).to.deep.equal(['failed', 'invoice:paid'])
    await page.reload()
    await shows(2)
    expect(await page.getByLabel('Event key').inputValue()).to.equal('invoice:paid')
    await page.goBack()
    await shows(5)
    expect(await page.getByLabel('Event key').inputValue()).to.equal('')
    await page.getByRole('button', { name: /^Filters/ }).click()
    await page.getByLabel('Status code').fill('502')
    await page.getByLabel('Status code').press('Enter')
    await shows(3)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await shows(9)
    expect([parameter('state'), parameter('statusCode'), parameter('tab')]).to.deep.equal([
      null,
      null,
      'deliveries',
    ])
    await page.getByRole('button', { name: 'Last hour' }).click()
    await shows(9)
    expect(Date.now() - Date.parse(parameter('since') ?? '')).to.be.within(3_600_000, 3_700_000)
    await page.getByLabel('From').fill('2031-05-04T11:02')
    await page.getByLabel('From').press('Tab')
    await page.getByText('No delivery matches the filter.').waitFor()
    expect(parameter('since')).to.equal('2031-05-04T09:02:00.000Z')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByLabel('Search').fill(` ${paid[1]!} `)
    await page.getByLabel('Search').press('Enter')
    await shows(1)
    await rowsOf(page).getByRole('link').click()
    await page.getByRole('heading', { name: 'invoice:paid' }).waitFor()
    await page.goBack()
    await shows(1)
  })

  it('fills a page that a bounded search leaves short, and stops when asked to', async () => {
    area.stage.answerWith(() => 200)
    const id = await newWebhook()
    await backlog(id, 'failed', 30)
    const { page } = await area.signIn(area.stage.member, { path: '/developer' })
    let [asked, held, release] = [0, Promise.resolve(), (): void => undefined]
    /** Of the answers from here on the fourth comes when it is let through. */
    const holdFourth = () => {
      asked = 0
      held = new Promise<void>((resolve) => {
        release = resolve
      })
    }
    // Each answer has two rows.
    await page.route(/\/deliveries\?/, async (route) => {
      const url = new URL(route.request().url())
      url.searchParams.set('limit', '2')
      if (++asked === 4) await held
      const response = await route.fetch({ url: url.href })
      const answer = (await response.json()) as { nextCursor: string | null; searchedUntil: string | null }
      answer.searchedUntil = answer.nextCursor === null ? null : '2026-05-04T09:02:11.204Z'
      await route.fulfill({ response, json: answer })
    })
    const stopAtSix = async () => {
      await page.getByText('Searched back to 4 May, 11:02:11').waitFor()
      await eventually(() => expect(asked).to.equal(4))
      await page.getByRole('button', { name: 'Stop' }).click()
      release()
      await rowsOf(page).nth(5).waitFor()
      await rowsOf(page).nth(6).waitFor({ state: 'detached' })
    }
    holdFourth()
    await page.goto(new URL(at(id, '&eventKey=comment:created').path, area.posthorn.url).href)
    await page.getByText('No answer for').waitFor()
    await stopAtSix()
    await page.getByRole('button', { name: 'Search on' }).click()
    await rowsOf(page).nth(19).waitFor()
    await page.getByText('Searched back').waitFor({ state: 'detached' })
    holdFourth()
    await page.getByRole('button', { name: 'Older' }).click()
    await stopAtSix()
    await page.getByText('Page 2').waitFor()
    await rowsOf(page).first().getByRole('button', { name: 'Retry delivery' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
    await rowsOf(page).first().getByText('Permanently failed').waitFor({ state: 'detached' })
    await rowsOf(page).nth(9).waitFor()
    expect(await page.getByRole('button', { name: 'Older' }).isDisabled()).to.equal(true)
  })

  it('aborts the search of a list that was left', async () => {
    const id = await newWebhook(false)
    const { page } = await area.signIn(area.stage.member, { path: '/developer' })
    const isSearch = (request: Request) => request.url().includes('/deliveries?')
    await page.route(/\/deliveries\?/, () => undefined)
    const begun = page.waitForRequest(isSearch)
    await page.goto(new URL(at(id).path, area.posthorn.url).href)
    await begun
    const aborted = page.waitForEvent('requestfailed', isSearch)
    await page.getByRole('link', { name: 'Incidents' }).click()
    expect((await aborted).failure()?.errorText).to.equal('net::ERR_ABORTED')
  })

  it('goes one page on however often "Older" is pressed before that page has come', async () => {
    const id = await newWebhook(false)
    await backlog(id, 'failed', 45)
    const { page } = await area.signIn(area.stage.member, at(id))
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route(/\/deliveries\?.*cursor=/, async (route) => {
      await held
      await route.continue()
    })
    const older = page.getByRole('button', { name: 'Older' })
    await older.focus()
    for (let press = 0; press < 3; press++) await page.keyboard.press('Enter')
    release()
    await page.getByText('Page 2').waitFor()
    await page.keyboard.press('Enter')
    await page.getByText('Page 3').waitFor()
    await rowsOf(page).nth(5).waitFor({ state: 'detached' })
    expect(await rowsOf(page).count()).to.equal(5)
  })

  it('retries what is selected, and shows the result by outcome also after a reload', async () => {
    const { stage } = area
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let count = 0
    stage.answerWith(async () => {
      const isFirst = count++ === 0
      if (!isFirst) await held
      return isFirst ? 503 : 200
    })
    const id = await newWebhook()
    const ids = await backlog(id, 'failed', 4)
    const { page } = await area.signIn(stage.member, at(id))
    for (const one of ids.slice(1)) await page.getByLabel(`Select delivery …${one.slice(-8)}`).check()
    await bulkOf(page).getByText('3 selected').waitFor()
    await bulkOf(page).getByRole('button', { name: 'Retry 3' }).click()
    await page.getByRole('dialog').getByText('Of 3 deliveries').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry (3)' }).click()
    const job = page.getByRole('region', { name: 'Retry of selected deliveries' })
    await job.getByText('In progress').waitFor()
    expect(await bulkOf(page).count()).to.equal(0)
    await page.reload()
    await job.getByText('In progress').waitFor()
    release()
    await job.getByText('3 of 3 deliveries attempted: 2 succeeded, 1 failed').waitFor()
    await job.getByText('Done').waitFor()
    await job.getByRole('button', { name: 'Dismiss' }).click()
    await job.waitFor({ state: 'detached' })
    expect(stage.receiver.postsOf(ids[0]!)).to.have.length(0)
  })

  it('acts on all that match the filter, after showing what matches and how many', async () => {
    area.stage.answerWith(() => 200)
    const id = await newWebhook()
    await backlog(id, 'failed', 24)
    await backlog(id, 'waiting', 3)
    const { page } = await area.signIn(area.stage.member, at(id))
    await page.getByLabel('Select this page').check()
    expect(await page.getByRole('button', { name: 'Select all that match' }).count()).to.equal(0)
    await page.getByLabel('State').selectOption('Permanently failed')
    await bulkOf(page).waitFor({ state: 'detached' })
    await page.getByLabel('Select this page').check()
    await bulkOf(page).getByText('20 selected').waitFor()
    await page.getByRole('button', { name: 'Select all that match' }).click()
    await bulkOf(page).getByRole('button', { name: 'Discard all' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Permanently failed', { exact: true }).waitFor()
    await dialog.getByRole('button', { name: 'Discard (24)' }).click()
    await page.getByText('Discarded 24 deliveries.').waitFor()
    await page.getByText('No delivery matches the filter.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await rowsOf(page).filter({ hasText: 'Waiting for retry' }).nth(2).waitFor()
  })

  it('finds what can be retried behind a thousand that are completed', async () => {
    const id = await newWebhook()
    await backlog(id, 'failed', 3)
    await setRow(area.stage.dataSource, await backlog(id, 'failed', 1_050), { state: 'completed' })
    const { page } = await area.signIn(area.stage.member, at(id, '&eventKey=comment:created'))
    await page.getByLabel('Select this page').check()
    await page.getByRole('button', { name: 'Select all that match' }).click()
    await bulkOf(page).getByRole('button', { name: 'Retry all' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry (3)' }).waitFor()
  })

  it('keeps selection and focus when new deliveries arrive', async () => {
    const id = await newWebhook(false)
    const [first] = await backlog(id, 'failed', 3)
    const { page } = await area.signIn(area.stage.member, at(id))
    const box = page.getByLabel(`Select delivery …${first!.slice(-8)}`)
    await box.check()
    await backlog(id, 'failed', 5)
    await rowsOf(page).nth(7).waitFor()
    expect(await box.isChecked()).to.equal(true)
    expect(await page.locator(':focus').getAttribute('aria-label')).to.equal(
      `Select delivery …${first!.slice(-8)}`,
    )
  })

  it('retries one row once, however often its button is clicked', async () => {
    area.stage.answerWith(() => 503)
    const id = await newWebhook()
    const [delivery] = await backlog(id, 'failed', 1)
    const { page } = await area.signIn(area.stage.member, at(id))
    let requests = 0
    page.on('request', (request) => {
      if (request.url().endsWith('/retry')) requests++
    })
    await page.getByRole('button', { name: `Retry delivery …${delivery!.slice(-8)}` }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).dblclick()
    await page.getByText('11', { exact: true }).waitFor()
    expect(requests).to.equal(1)
    expect(area.stage.receiver.postsOf(delivery!)).to.have.length(1)
  })

  it('offers no selection to a member who may not manage webhooks', async () => {
    const id = await newWebhook(false)
    await backlog(id, 'failed', 2)
    const { organisationId } = area.stage.member
    const reader = await createMember(area.stage.dataSource, {
      organisationId,
      permissions: ['webhook:read', 'comment:read'],
    })
    const { page } = await area.signIn(reader, at(id))
    await rowsOf(page).nth(1).waitFor()
    expect(await page.getByRole('table', { name: 'Deliveries' }).getByRole('checkbox').count()).to.equal(0)
    expect(await page.getByRole('button', { name: 'Retry delivery' }).count()).to.equal(0)
  })
})
