import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'

describe('the export of a list', () => {
  const area = useDeveloperArea()
  let webhookId: string

  before(async () => {
    const { dataSource, member } = area.stage
    const { organisationId } = member
    webhookId = (await createWebhookRow(dataSource, { organisationId, url: 'https://x.example/' })).id
    await writeBacklog(dataSource, { organisationId, webhookId, state: 'failed', count: 30 })
    await writeBacklog(dataSource, { organisationId, webhookId, state: 'waiting', count: 5 })
  })

  async function exported(page: Page): Promise<{ name: string; rows: { state: string }[] }> {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export as NDJSON' }).click(),
    ])
    const lines = readFileSync(await download.path(), 'utf8')
      .split('\n')
      .slice(0, -1)
    const rows = lines.map((line) => JSON.parse(line) as { state: string })
    return { name: download.suggestedFilename(), rows }
  }

  it('has every delivery that the filter matches, not only the page', async () => {
    const { page } = await area.signIn(area.stage.member, {
      path: `/developer?webhook=${webhookId}&tab=deliveries`,
    })
    expect((await exported(page)).rows).to.have.length(35)
    await page.getByLabel('State').selectOption('failed')
    await page.getByText('Page 1').waitFor()
    const { name, rows } = await exported(page)
    expect(name).to.match(/^deliveries-[\dT-]{19}\.ndjson$/)
    expect(rows.map(({ state }) => state)).to.deep.equal(Array(30).fill('failed'))
    await page.getByText('30 deliveries exported.').waitFor()
  })

  it('is there for events too', async () => {
    const { page } = await area.signIn(area.stage.member, { path: '/developer?view=events' })
    const { name, rows } = await exported(page)
    expect(name).to.match(/^events-/)
    expect(rows).to.have.length(35)
  })
})
