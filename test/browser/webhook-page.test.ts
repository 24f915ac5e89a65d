import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'
import { writeFailedAttempts } from '../helpers/deliveries/backlog.ts'
import { setRow } from '../helpers/deliveries/set-row.ts'

describe('the page of a webhook in the developer area', () => {
  const area = useDeveloperArea()

  const webhook = () => createCommentWebhook(area, '/page')
  const backlog = (webhookId: string, state: 'failed' | 'waiting', count: number) =>
    writeBacklogOf(area, webhookId, state, count)
  const at = (id: string, tab = '') => ({
    path: `/developer?webhook=${id}${tab === '' ? '' : `&tab=${tab}`}`,
  })

  it('has tabs that its address names, and that Back leads through', async () => {
    const { id } = await webhook()
    const { page } = await area.signIn(area.stage.member, at(id))
    await page.getByRole('heading', { name: 'Latest attempt' }).waitFor()
    const current = page.locator('.tabs [aria-current="page"]')
    for (const [tab, heading] of [
      ['Deliveries', 'Deliveries'],
      ['Incidents', 'Incidents'],
      ['Settings', 'Signing secret'],
    ] as const) {
      await page.locator('.tabs').getByRole('link', { name: tab }).click()
      await page.getByRole('heading', { level: 2, name: heading }).waitFor()
      expect(await current.innerText()).to.equal(tab)
      expect(new URL(page.url()).searchParams.get('tab')).to.equal(tab.toLowerCase())
    }
    await page.goBack()
    await page.getByRole('heading', { level: 2, name: 'Incidents' }).waitFor()
  })

  it('never calls a webhook healthy whose last attempt failed, after off and on or a discard', async () => {
    const { stage } = area
    stage.answerWith(() => 503)
    const { id } = await webhook()
    const deliveryId = await stage.publish(area.posthorn, { event: 'comment:created', webhookId: id })
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 4 })
    // No attempt is in progress whenever the webhook is switched off.
    await setRow(stage.dataSource, deliveryId, { state: 'waiting', attempts: 4, dueInMs: 600_000 })
    const { page } = await area.signIn(stage.member, at(id))
    const heading = page.locator('.heading')
    await heading.getByText('Failing since').waitFor()
    const dialog = page.getByRole('dialog')
    await heading.getByRole('switch').click()
    await dialog.getByRole('button', { name: 'Switch off' }).click()
    await page.getByText('The incident ends with the next delivery that succeeds.').waitFor()
    await heading.getByRole('switch').click()
    await dialog.getByRole('button', { name: 'Resume stopped (1)' }).waitFor()
    await page.keyboard.press('Escape')
    await heading.getByText('Failing since').waitFor()
    await setRow(stage.dataSource, deliveryId, { state: 'failed', attempts: 4 })
    await page.getByText('1 delivery is permanently failed; no other waits for a retry.').waitFor()
    await page.getByRole('button', { name: 'Discard failed' }).click()
    await dialog.getByRole('button', { name: 'Discard failed (1)' }).click()
    await heading.getByText('No open incident, last attempt failed').waitFor()
    await heading.getByRole('switch').click()
    await dialog.getByRole('button', { name: 'Switch off' }).click()
    await heading.getByText('Switched off').waitFor()
    await heading.getByRole('switch').click()
    await page.keyboard.press('Escape')
    await heading.getByText('No open incident, last attempt failed').waitFor()
    expect(await page.getByText('Healthy').count()).to.equal(0)
  })

  it('never shows the payload of another attempt, also where that of the latest cannot be read at first', async () => {
    const { stage } = area
    stage.answerWith(() => 200)
    const { id } = await webhook()
    const publish = async (): Promise<string> => {
      const deliveryId = await stage.publish(area.posthorn, { event: 'comment:created', webhookId: id })
      await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
      const [event] = await stage.dataSource.query<[{ traceId: string }]>(
        `SELECT trace_id AS "traceId" FROM event JOIN delivery ON event.id = event_id WHERE delivery.id = $1`,
        [deliveryId],
      )
      return event.traceId
    }
    const first = await publish()
    const { page } = await area.signIn(stage.member, at(id))
    const card = page.locator('.latest')
    await card.getByText(first).waitFor()
    let refused = 0
    await page.route(/\/deliveries\/[0-9a-f-]+$/, async (route) => {
      refused++
      await (refused === 1 ? route.fulfill({ status: 503, body: '{}' }) : route.continue())
    })
    await card.getByText(await publish()).waitFor()
    expect(refused).to.be.above(1)
    expect(await card.getByText(first).count()).to.equal(0)
  })

  it('says what a switch-off does to what waits, and counts it', async () => {
    const { id } = await webhook()
    await backlog(id, 'waiting', 3)
    await backlog(id, 'failed', 1)
    const { page } = await area.signIn(area.stage.member, at(id))
    await page.locator('.heading').getByRole('switch').click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('3 deliveries that wait for a retry are stopped.').waitFor()
    await dialog.getByText('1 permanently failed delivery stays as it is.').waitFor()
  })

  it('says in plain words what the last 24 hours and the figures of first attempts are', async () => {
    const { stage } = area
    stage.answerWith(() => 200)
    const { id } = await webhook()
    const { page } = await area.signIn(stage.member, at(id))
    await page.getByText('0 successful attempts', { exact: true }).waitFor()
    await page.getByText('No first attempt in this time.').waitFor()
    const deliveryId = await stage.publish(area.posthorn, { event: 'comment:created', webhookId: id })
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    await page.reload()
    await page.getByText(/Median .+, 99th percentile/).waitFor()
    await page.getByText('Figures').click()
    await page.getByRole('columnheader', { name: 'Successful attempts' }).waitFor()
    expect(await page.getByText(/p50|p99/).count()).to.equal(0)
  })

  it('names bars of seven days by day and hour', async () => {
    const { id } = await webhook()
    const ids = await backlog(id, 'failed', 1)
    await writeFailedAttempts(area.stage.dataSource, ids, { statusCode: 503 })
    const { page } = await area.signIn(area.stage.member, { path: `${at(id).path}&range=7d` })
    const bar = page.locator('.chart title').last()
    await page.getByText('1 failed attempt', { exact: true }).waitFor()
    expect(await bar.textContent()).to.match(/^\d+ \w+, \d\d:\d\d: 0 successful attempts, 1 failed attempt$/)
  })

  it('shows how to verify in four languages, signed with the own secret once that is revealed', async () => {
    const { id, signingSecret } = await webhook()
    const { page } = await area.signIn(area.stage.member, at(id, 'settings'))
    const example = page.getByRole('region', { name: 'Example of a delivery' })
    await example.waitFor()
    const signedWith = async (secret: string) => {
      const text = await example.innerText()
      const body = text.slice(text.indexOf('\n\n') + 2)
      return text.includes(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
    }
    const shown = /Signed with the example secret ([0-9a-f]{64})/.exec(await page.locator('main').innerText())
    expect(await signedWith(shown?.[1] ?? '')).to.equal(true)
    for (const [language, words] of [
      ['Node.js', 'timingSafeEqual'],
      ['Python', 'compare_digest'],
      ['Go', 'hmac.Equal'],
      ['Java', 'MessageDigest.isEqual'],
    ] as const) {
      await page.getByLabel('Language').selectOption(language)
      await page
        .getByRole('region', { name: `Program in ${language}` })
        .getByText(words)
        .waitFor()
    }
    await page.getByRole('button', { name: 'Reveal' }).click()
    await page.getByText('Signed with the secret of this webhook').waitFor()
    expect(await signedWith(signingSecret)).to.equal(true)
  })
})
