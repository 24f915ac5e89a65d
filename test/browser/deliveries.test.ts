import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { setRow } from '../helpers/deliveries/set-row.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'

describe('acting on deliveries in the developer area', () => {
  const area = useDeveloperArea()

  const backlog = (webhookId: string, state: 'failed' | 'waiting', count: number) =>
    writeBacklogOf(area, webhookId, state, count)
  const otherWebhook = (enabled = true) => createCommentWebhook(area, '/other', enabled)
  const at = (webhookId: string) => ({ path: `/developer?webhook=${webhookId}` })
  const deliveriesAt = (webhookId: string) => ({ path: `/developer?webhook=${webhookId}&tab=deliveries` })

  it('shows a retry live: what failed, when the next one is due, and that it recovered', async () => {
    const { stage } = area
    let isUp = false
    stage.answerWith(() => (isUp ? 200 : 503))
    const { page } = await area.signIn(stage.member, deliveriesAt(stage.webhookId))
    await page.getByText('No deliveries yet.').waitFor()
    const deliveryId = await stage.publish(area.posthorn)
    await page.locator('.heading').getByText('Failing since').waitFor()
    await page
      .getByRole('table', { name: 'Deliveries' })
      .getByRole('link', { name: 'customer:created' })
      .click()
    const timeline = page.locator('.timeline')
    await timeline.getByText('Due in').waitFor()
    expect(await timeline.getByRole('listitem').count()).to.equal(10)
    isUp = true
    await timeline.getByText('HTTP 200').waitFor()
    const marks = await timeline.locator('.made .mark').allInnerTexts()
    const failures = marks.slice(0, -1)
    expect([...new Set(failures), marks.at(-1)]).to.deep.equal(['HTTP 503', 'HTTP 200'])
    await page.getByText('Completed', { exact: true }).waitFor()
    const workflow = page.getByRole('link', { name: 'Open in the Temporal UI' })
    expect(await workflow.getAttribute('href')).to.equal(
      `http://127.0.0.1:1/temporal/namespaces/default/workflows/delivery%2F${deliveryId}`,
    )
    await page.locator('.crumbs').getByRole('link', { name: /127/ }).click()
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByText('Healthy').waitFor()
    await page.getByText('1 successful attempt', { exact: true }).waitFor()
    const counted = failures.length === 1 ? '1 failed attempt' : `${failures.length} failed attempts`
    await page.getByText(counted, { exact: true }).waitFor()
    await page.getByRole('link', { name: 'Incidents' }).click()
    await page.getByText('Over', { exact: true }).waitFor()
  })

  it('says of a delivery that it is paused in Temporal, and since when, until it goes on', async () => {
    const { stage } = area
    const { id: webhookId } = await otherWebhook(false)
    const [deliveryId] = await backlog(webhookId, 'waiting', 1)
    const pause = (since: string) =>
      stage.dataSource.query(`UPDATE delivery SET paused_since = ${since} WHERE id = $1`, [deliveryId])
    await pause(`'2026-05-04T09:02:11.204Z'`)
    const path = `/developer?webhook=${webhookId}&delivery=${deliveryId}`
    const { page } = await area.signIn(stage.member, { path })
    const note = page.locator('.note.paused')
    expect(await note.innerText()).to.match(/^Paused in Temporal since 4 May(, | 2026)/)
    await pause('NULL')
    await note.waitFor({ state: 'detached' })
  })

  it('shows payload and answer character by character', async () => {
    const { stage, posthorn } = area
    stage.answerWith((_index, _post, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'x-served-by': 'front-7' }).end('thank you')
      return null
    })
    await posthorn.call('POST', `/api/orgs/${stage.member.organisationId}/events`, {
      apiKey: stage.member.apiKey,
      raw: '{"event":"comment:created","data":{"amount":10.50,"id":12345678901234567890,"deep":{"list":[]}}}',
    })
    const { page } = await area.signIn(stage.member, {
      ...at(stage.webhookId),
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const latest = page.locator('.latest')
    await latest.getByText('comment:created', { exact: true }).waitFor()
    const payload = latest.getByRole('region', { name: 'Payload' })
    expect(await payload.innerText()).to.include('    "amount": 10.50,\n    "id": 12345678901234567890,')
    await latest.getByRole('button', { name: 'Raw' }).click()
    const sent = stage.receiver.posts.at(-1)!.body.toString('utf8')
    expect(await payload.innerText()).to.equal(sent)
    await latest.getByRole('button', { name: 'Copy payload' }).click()
    await page.getByText('Copied the payload.').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).to.equal(sent)
    await latest.getByRole('link', { name: 'Whole delivery' }).click()
    expect(await page.getByRole('region', { name: 'Headers of the answer' }).innerText()).to.include(
      'x-served-by: front-7',
    )
    expect(await page.getByRole('region', { name: 'Body of the answer' }).innerText()).to.equal('thank you')
  })

  it('retries permanently failed deliveries, and no others, after showing their number', async () => {
    const { id } = await otherWebhook()
    area.stage.answerWith(() => 200)
    await backlog(id, 'failed', 3)
    await backlog(id, 'waiting', 2)
    const { page } = await area.signIn(area.stage.member, at(id))
    await page.getByRole('button', { name: 'Retry failed' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('3 permanently failed deliveries get one attempt at once; what fails').waitFor()
    await dialog.getByRole('button', { name: 'Retry failed (3)' }).click()
    await dialog.getByText('3 of 3 deliveries attempted').waitFor()
    await dialog.getByText('Done').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    const facts = page.getByRole('region', { name: 'Delivery status' })
    await facts.getByText('Permanently failed').locator('xpath=..').getByText('0', { exact: true }).waitFor()
    expect(await facts.getByText('Waiting for retry').locator('xpath=..').innerText()).to.include('2')

    await page.getByRole('button', { name: 'Force retry' }).click()
    await dialog.getByRole('button', { name: 'Force retry (2)' }).click()
    await dialog.getByText('2 of 2 deliveries attempted').waitFor()
  })

  it('forces all enabled webhooks, and shows the progress', async () => {
    const { stage } = area
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    stage.answerWith(async (_index, { path }) => {
      if (path === '/hook') await held
      return 200
    })
    const [on, off] = [await otherWebhook(), await otherWebhook(false)]
    await backlog(stage.webhookId, 'waiting', 4)
    await backlog(on.id, 'failed', 6)
    await backlog(off.id, 'failed', 5)
    const { page } = await area.signIn()
    await page.getByRole('button', { name: 'Force retry all' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Force retry all (10)' }).click()
    await dialog.getByText('In progress').waitFor()
    await dialog.getByText('6 of 10 deliveries attempted').waitFor()
    const bar = dialog.getByRole('progressbar')
    expect([await bar.getAttribute('value'), await bar.getAttribute('max')]).to.deep.equal(['6', '10'])
    release()
    await dialog.getByText('10 of 10 deliveries attempted').waitFor()
    await dialog.getByText('Done').waitFor()
  })

  it('retries or discards one delivery, and discards all that failed', async () => {
    const { stage } = area
    stage.answerWith(() => 200)
    const { id } = await otherWebhook()
    const [first, second] = await backlog(id, 'failed', 4)
    const { page } = await area.signIn(stage.member, { path: `/developer?webhook=${id}&delivery=${first!}` })
    await page.getByRole('button', { name: 'Retry now' }).click()
    await page.getByText('It has had its 10 attempts: this makes one more now.').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Retry' }).click()
    await page.getByText('Completed', { exact: true }).waitFor()
    expect(stage.receiver.postsOf(first!)).to.have.length(1)
    await page.goto(`${area.posthorn.url}/developer?webhook=${id}&delivery=${second!}`)
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
    await page.getByText('Stopped').waitFor()

    await page.goto(`${area.posthorn.url}/developer?webhook=${id}`)
    await page.getByRole('button', { name: 'Discard failed' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Discard failed (2)' }).click()
    await page.getByText('Discarded 2 deliveries.').waitFor()
  })

  it('sends a test event and shows its result', async () => {
    const { stage } = area
    stage.answerWith(() => 204)
    const { page } = await area.signIn(stage.member, at(stage.webhookId))
    await page.getByRole('button', { name: 'Send a test event' }).click()
    await page.getByRole('heading', { name: 'webhook:test' }).waitFor()
    await page.locator('.timeline').getByText('HTTP 204').waitFor()
  })

  it('offers no retry of a test event, which has one attempt', async () => {
    const { stage } = area
    stage.answerWith(() => 503)
    const { page } = await area.signIn(stage.member, at(stage.webhookId))
    await page.getByRole('button', { name: 'Send a test event' }).click()
    await page.getByText('A test event is attempted once').first().waitFor()
    expect(await page.locator('.timeline').getByRole('listitem').count()).to.equal(1)
    expect(await page.getByRole('button', { name: 'Retry now' }).count()).to.equal(0)
    await page.goto(new URL(deliveriesAt(stage.webhookId).path, area.posthorn.url).href)
    const row = page.getByRole('row').filter({ hasText: 'webhook:test' }).filter({ hasText: 'Stopped' })
    await row.waitFor()
    expect(await row.getByRole('button', { name: 'Retry' }).count()).to.equal(0)
  })

  it('reads a delivery less often, the longer it waits', async () => {
    const { id } = await otherWebhook(false)
    const [deliveryId] = await backlog(id, 'waiting', 1)
    const { page } = await area.signIn()
    let count = 0
    page.on('request', (request) => {
      if (request.url().endsWith(`/deliveries/${deliveryId}`)) count++
    })
    await page.clock.install()
    await page.goto(new URL(`${at(id).path}&delivery=${deliveryId}`, area.posthorn.url).href)
    await page.locator('.timeline').getByText('Due in').waitFor()
    await page.clock.runFor(10_000)
    expect(count).to.equal(1)
    const next = page.waitForRequest(/\/deliveries\//)
    await page.clock.runFor(10_000)
    await next
  })

  it('offers to resume what was stopped when the webhook is switched on, and shows the result', async () => {
    const { stage } = area
    let count = 0
    stage.answerWith(() => (count++ % 2 === 0 ? 200 : 503))
    const { id } = await otherWebhook()
    await backlog(id, 'waiting', 4)
    const { page } = await area.signIn(stage.member, at(id))
    const heading = page.locator('.heading')
    await heading.getByRole('switch').click()
    await page.getByRole('dialog').getByRole('button', { name: 'Switch off' }).click()
    await heading.getByText('Switched off').waitFor()
    await heading.getByRole('switch').click()
    const facts = page.getByRole('region', { name: 'Delivery status' })
    await facts.getByText('Stopped', { exact: true }).locator('xpath=..').getByText('4').waitFor()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Resume stopped (4)' }).click()
    await dialog.getByText('4 of 4 deliveries attempted: 2 succeeded, 2 failed').waitFor()
  })

  it('offers to resume nothing where all that was stopped goes on by itself', async () => {
    const { stage } = area
    const { id } = await otherWebhook(false)
    const [deliveryId] = await backlog(id, 'waiting', 1)
    await setRow(stage.dataSource, deliveryId!, { state: 'stopped', attempts: 0, workflow: false })
    const { page } = await area.signIn(stage.member, at(id))
    await page.locator('.heading').getByRole('switch').click()
    await page.getByText('Switched on.').waitFor()
    await stage.reaches(deliveryId!, { state: 'completed', attempts: 1 })
    expect(await page.getByRole('dialog').count()).to.equal(0)
  })

  it('offers to resume nothing while another form is open', async () => {
    const { stage } = area
    const { id } = await otherWebhook(false)
    const [deliveryId] = await backlog(id, 'waiting', 1)
    await setRow(stage.dataSource, deliveryId!, { state: 'stopped', attempts: 1, workflow: false })
    const { page } = await area.signIn(stage.member)
    const row = page.getByRole('row').filter({ has: page.locator(`a[href$="${id}"]`) })
    await row.getByRole('switch', { checked: false }).waitFor()
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    await page.route('**/overview', async (route) => {
      await held
      await route.continue()
    })
    await row.getByRole('switch').click()
    await page.getByText('Switched on.').waitFor()
    await page.getByRole('button', { name: 'New webhook' }).click()
    const url = page.getByRole('dialog', { name: 'New webhook' }).locator('[name=url]')
    await url.fill('https://x.example/typed')
    release()
    await row.locator('[role=switch][aria-checked=true]').waitFor()
    expect(await url.inputValue()).to.equal('https://x.example/typed')
  })

  it('keeps the focus on the heading of a page that has loaded', async () => {
    const { id } = await otherWebhook(false)
    const [deliveryId] = await backlog(id, 'failed', 1)
    const { page } = await area.signIn()
    for (const [path, words] of [
      [at(id).path, '/other'],
      [`${at(id).path}&delivery=${deliveryId}`, 'comment'],
      [`${at(id).path}&delivery=nonsense`, 'cannot be shown'],
    ] as const) {
      await page.goto(new URL(path, area.posthorn.url).href)
      await page.locator('h1').getByText(words).waitFor()
      expect(await page.evaluate('document.activeElement.tagName'), path).to.equal('H1')
    }
  })

  it('keeps filter and page on the way to a delivery and back, and after a reload', async () => {
    const { id } = await otherWebhook(false)
    await backlog(id, 'failed', 45)
    const { page } = await area.signIn(area.stage.member, deliveriesAt(id))
    const rows = page.getByRole('table', { name: 'Deliveries' }).locator('tbody').getByRole('row')
    await page.getByLabel('State').selectOption('Permanently failed')
    for (const pageNumber of [2, 3]) {
      await page.getByRole('button', { name: 'Older' }).click()
      await page.getByText(`Page ${pageNumber}`).waitFor()
    }
    await rows.nth(5).waitFor({ state: 'detached' })
    expect(await page.getByRole('button', { name: 'Older' }).isDisabled()).to.equal(true)
    await rows.first().getByRole('link').click()
    await page.locator('.timeline').waitFor()
    expect(await page.title()).to.match(/^comment:created · .+ · Posthorn$/)
    await page.goBack()
    await page.getByText('Page 3').waitFor()
    expect(await page.getByLabel('State').inputValue()).to.equal('failed')
    await page.reload()
    await page.getByText('Page 3').waitFor()
    await rows.nth(4).waitFor()
    await page.getByRole('button', { name: 'Newer' }).click()
    await page.getByText('Page 2').waitFor()
    await rows.nth(19).waitFor()
  })

  it('goes on with the progress of a retry after polls that fail, and shows it again after it was closed', async () => {
    const { stage } = area
    stage.answerWith(async () => {
      await delay(400)
      return 200
    })
    const { id } = await otherWebhook()
    await backlog(id, 'failed', 60)
    const { page } = await area.signIn(stage.member, at(id))
    let failures = 2
    await page.route(/retry-deliveries\/[0-9a-f-]+$/, (route) =>
      failures-- > 0 ? route.fulfill({ status: 503, body: 'no' }) : route.continue(),
    )
    await page.getByRole('button', { name: 'Retry failed' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Retry failed (60)' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByRole('alert').waitFor({ state: 'detached' })
    await dialog.getByText('In progress').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.reload()
    await page.getByRole('button', { name: 'Retry failed' }).click()
    await dialog.getByText('60 of 60 deliveries attempted: 60 succeeded, 0 failed').waitFor()
  })
})
