import { expect } from 'chai'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

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
