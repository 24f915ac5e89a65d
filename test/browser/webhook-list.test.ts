import { expect } from 'chai'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'

describe('the list of webhooks in the developer area', function () {
  const area = useDeveloperArea()

  before(async () => {
    const { organisationId } = area.stage.member
    for (let index = 10; index < 69; index++)
      await createWebhookRow(area.stage.dataSource, {
        organisationId,
        url: `https://hooks.example.com/systems/${index}?token=secret-${index}`,
        subscribedEventKeys: [index === 42 ? 'comment:created' : 'invoice:paid'],
      })
  })

  it('shows sixty webhooks on two screens, one to a row', async () => {
    const { page } = await area.signIn()
    await page.getByRole('row').nth(60).waitFor()
    expect(await page.evaluate<number>('document.documentElement.scrollHeight')).to.be.at.most(1800)
    const rowHeight = (await page.getByRole('row').nth(30).boundingBox())?.height
    expect(rowHeight).to.be.at.most(28)
  })

  it('masks the query of a URL until the webhook is opened', async () => {
    const { page } = await area.signIn()
    const link = page.getByRole('link', { name: '/systems/42' })
    await link.waitFor()
    expect(await page.locator('main').innerHTML()).to.not.include('secret-42')
    await link.click()
    await page.getByRole('heading', { name: 'secret-42' }).waitFor()
  })

  it('is searched by URL, id and event key, and keeps the search in its address', async () => {
    const { page } = await area.signIn()
    const search = page.getByLabel('Search webhooks')
    await search.fill('hooks.example comment')
    const rows = page.getByRole('rowheader')
    await rows.nth(1).waitFor({ state: 'detached' })
    expect(await rows.allInnerTexts()).to.deep.equal(['hooks.example.com/systems/42?…'])
    await page.reload()
    await page.getByRole('link', { name: '/systems/42' }).click()
    await page.getByRole('heading', { level: 1, name: '/systems/42' }).waitFor()
    await page.goBack()
    expect(await search.inputValue()).to.equal('hooks.example comment')
    expect(await rows.count()).to.equal(1)
    await search.fill('no such webhook')
    await page.getByText('No webhook has “no such webhook”').waitFor()
  })

  it('shows the last 24 hours of each webhook, and says where nothing was sent', async () => {
    const { stage } = area
    stage.answerWith(() => 503)
    const deliveryId = await stage.publish(area.posthorn)
    await stage.fails(deliveryId)
    const { page } = await area.signIn()
    const failing = page.getByRole('row').filter({ hasText: '127.0.0.1' })
    await failing.getByRole('img', { name: /, [1-9]\d* failed attempts? in 24 hours/ }).waitFor()
    const idle = page.getByRole('row').filter({ hasText: '/systems/42' })
    await idle.getByRole('img', { name: '0 successful attempts, 0 failed attempts in 24 hours' }).waitFor()
    await idle.getByText('none sent').waitFor()
  })

  it('says how old what it shows is, while nothing newer comes', async () => {
    const { page } = await area.signIn()
    await page.getByRole('row').nth(1).waitFor()
    await page.route('**/webhooks/overview', (route) => route.abort())
    await page.getByText(/No answer for \d+ seconds?; this is how it stood at \d\d:\d\d:\d\d\./).waitFor()
    expect(await page.getByRole('row').count()).to.equal(61)
    await page.unroute('**/webhooks/overview')
    await page.getByText('No answer for').waitFor({ state: 'detached' })
  })

  it('is read again after a request that is never answered', async () => {
    const { page } = await area.signIn()
    await page.getByRole('row').nth(1).waitFor()
    // A tenth of each deadline.
    await page.evaluate(
      'AbortSignal.timeout = ((timeout) => (ms) => timeout.call(AbortSignal, ms / 10))(AbortSignal.timeout)',
    )
    let count = 0
    await page.route('**/webhooks/overview', (route) => (++count === 1 ? undefined : route.continue()))
    await eventually(() => expect(count).to.equal(1))
    await createCommentWebhook(area, '/unanswered')
    await page.getByRole('link', { name: '/unanswered' }).waitFor()
  })

  it('marks the place in the navigation that is shown, and leads to the others', async () => {
    const { page } = await area.signIn()
    const current = page.getByRole('banner').locator('[aria-current="page"]')
    expect(await current.allInnerTexts()).to.deep.equal(['Webhooks'])
    for (const name of ['Events', 'Catalogue', 'Audit', 'Notifications']) {
      await page.getByRole('banner').getByRole('link', { name }).click()
      await page.getByRole('heading', { level: 1, name }).waitFor()
      expect(await current.allInnerTexts()).to.deep.equal([name])
      expect(await page.title()).to.equal(`${name} · Posthorn`)
    }
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor()
  })
})

describe('failing and degraded webhooks in the developer area', () => {
  const area = useDeveloperArea()

  /** Attempts of the last minutes, the newest first; each outcome by its count. */
  async function attempted(path: string, outcomes: [outcome: 'succeeded' | 'failed', count: number][]) {
    const { dataSource, member } = area.stage
    const { id } = await createCommentWebhook(area, path)
    const [deliveryId] = await writeBacklogOf(area, id, 'waiting', 1)
    const all = outcomes.flatMap(([outcome, count]) => Array<string>(count).fill(outcome))
    await dataSource.query(
      `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, status_code)
       SELECT $1, n, $2, 'schedule', 'https://a.example/', now() - n * interval '1 second', 240, outcome, 200
         FROM unnest($3::text[]) WITH ORDINALITY o (outcome, n)`,
      [deliveryId, id, all],
    )
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at) VALUES (uuidv7(), $1, $2, now() - interval '2 minutes')`,
      [member.organisationId, id],
    )
    return id
  }
  let degradedId: string

  before(async () => {
    degradedId = await attempted('/a-degraded', [
      ['succeeded', 46],
      ['failed', 4],
    ])
    await attempted('/b-dead', [['failed', 12]])
  })

  it('the list tells a degraded webhook from a dead one, by words, and lists the most urgent first', async () => {
    const { page } = await area.signIn()
    const rows = page.getByRole('row')
    await rows.nth(3).waitFor()
    expect(await rows.nth(1).innerText()).to.match(/Failing since[^]+b-dead/)
    expect(await rows.nth(2).innerText()).to.match(/Degraded since[^]+a-degraded/)
    await page.getByText('3 webhooks, 1 failing, 1 degraded').waitFor()
    await rows.nth(2).getByText('92 % · 240 ms').waitFor()
    await rows.nth(1).getByText('0 % · 240 ms').waitFor()
    await page.getByRole('columnheader', { name: 'Success, p95' }).waitFor()
  })

  it('the page of a degraded webhook says so in its heading and banner', async () => {
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${degradedId}` })
    await page.locator('.heading').getByText('Degraded since').waitFor()
    const banner = page.getByRole('region', { name: 'Open incident' })
    await banner.getByText('Some deliveries fail since').waitFor()
  })
})
