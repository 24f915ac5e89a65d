import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { setRow } from '../helpers/deliveries/set-row.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

const QUEUED = 12
/** The sweeper begins none of them while the test looks. */
const SWEEP_IN_MS = 300_000

describe('deliveries before their first attempt in the developer area', () => {
  const area = useDeveloperArea()
  let webhookId: string
  let ids: string[]

  before(async () => {
    const { dataSource, member } = area.stage
    const { organisationId } = member
    const url = 'https://slow.example.com/queue'
    webhookId = (await createWebhookRow(dataSource, { organisationId, url })).id
    ids = await writeBacklog(dataSource, { organisationId, webhookId, state: 'waiting', count: QUEUED + 1 })
    const [attempted] = ids
    await dataSource.query(
      `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, status_code)
       VALUES ($1, 7, $2, 'schedule', $3, now() - interval '1 minute', 9000, 'failed', 503)`,
      [attempted, webhookId, url],
    )
  })
  beforeEach(async () => {
    const { dataSource } = area.stage
    const [attempted, ...queued] = ids
    await dataSource.query(
      `UPDATE delivery SET next_attempt_at = now() - interval '3 minutes' WHERE id = $1`,
      [attempted],
    )
    await setRow(dataSource, queued, { state: 'pending', sweepInMs: SWEEP_IN_MS })
    await dataSource.query(
      `UPDATE delivery SET created_at = now() - interval '7 minutes' WHERE id = ANY($1)`,
      [queued],
    )
  })
  const at = (query: string) => ({ path: `/developer?webhook=${webhookId}${query}` })

  it('are counted in the list, with the age of the oldest', async () => {
    const { page } = await area.signIn()
    const row = page.getByRole('row').filter({ hasText: 'slow.example.com' })
    await row.getByText('First attempt waits 7 minutes').waitFor()
    expect(await row.getByTitle(`${QUEUED} deliveries wait for their first attempt`).innerText()).to.match(
      /^12\b/,
    )
  })

  it('are counted in the overview of the webhook and in its banner, with the age of the oldest', async () => {
    const { page } = await area.signIn(area.stage.member, at(''))
    const facts = page.getByRole('region', { name: 'Delivery status' })
    const fact = facts.getByText('Waiting for first attempt').locator('xpath=..')
    await fact.getByText('the oldest for 7 minutes').waitFor()
    await page.getByText('12 deliveries wait for their first attempt, the oldest for 7 minutes.').waitFor()
    await fact.getByRole('link', { name: '12' }).click()
    const rows = page.getByRole('table', { name: 'Deliveries' }).locator('tbody').getByRole('row')
    await rows.nth(QUEUED - 1).waitFor()
    expect(await rows.count()).to.equal(QUEUED)
  })

  it('say for how long they wait, why, and how many are before them', async () => {
    const { page } = await area.signIn(area.stage.member, at(`&delivery=${ids.at(-1)!}`))
    await page
      .locator('.timeline')
      .getByText('Waiting for first attempt for 7 minutes: this endpoint answers slowly, 11 before it')
      .waitFor()
    await area.stage.dataSource.query(`UPDATE delivery SET paused_since = now() WHERE id = $1`, [ids.at(-1)])
    await page.locator('.timeline').getByText('Paused in Temporal').waitFor()
  })

  it('are distinct from retries, which say for how long they are overdue', async () => {
    const { page } = await area.signIn(area.stage.member, at(`&delivery=${ids[0]!}`))
    await page.locator('.timeline').getByText('Overdue for 3 minutes').waitFor()
  })
})
