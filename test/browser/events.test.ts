import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createMember, createWebhookRow } from '../helpers/database/factories.ts'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

describe('events in the developer area', () => {
  const area = useDeveloperArea()

  const publish = async (event: string, traceId?: string) => {
    const { organisationId, apiKey } = area.stage.member
    const published = await area.posthorn.call('POST', `/api/orgs/${organisationId}/events`, {
      apiKey,
      body: { event, data: { id: 'x' }, ...(traceId === undefined ? {} : { traceId }) },
    })
    expect(published.status, published.text).to.equal(202)
    return (published.json as { id: string }).id
  }

  it('shows what was published with its deliveries by state, filtered by the address, and one event whole', async () => {
    const { stage } = area
    stage.answerWith((_index, { path }) => (path === '/hook' ? 200 : 503))
    const { id } = await createWebhookRow(stage.dataSource, {
      organisationId: stage.member.organisationId,
      url: stage.receiver.url.replace('/hook', '/other'),
      subscribedEventKeys: ['comment:created'],
    })
    await publish('customer:created')
    await publish('comment:created', 'trace-of-a-comment')
    const { page } = await area.signIn(stage.member, { path: '/developer?view=events' })
    const rows = page.getByRole('table', { name: 'Events' }).locator('tbody').getByRole('row')
    await rows.nth(1).waitFor()
    const comment = rows.filter({ hasText: 'comment:created' })
    await comment.getByText('1 completed').waitFor()
    await comment.getByText('1 waiting').waitFor()
    await page.getByLabel('Event key').fill('customer:created')
    await page.getByLabel('Event key').press('Enter')
    await comment.waitFor({ state: 'detached' })
    await page.reload()
    await rows.first().waitFor()
    expect(await rows.count()).to.equal(1)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByLabel('Search').fill('trace-of-a-comment')
    await page.getByLabel('Search').press('Enter')
    await rows.nth(1).waitFor({ state: 'detached' })
    await comment.getByRole('link').click()

    await page.getByRole('heading', { name: 'comment:created' }).waitFor()
    expect(await page.getByRole('region', { name: 'Payload' }).innerText()).to.include('"id": "x"')
    await page.getByRole('region', { name: 'Ids' }).getByText('trace-of-a-comment').waitFor()
    const delivery = page
      .getByRole('table', { name: 'Deliveries of the event' })
      .getByRole('link', { name: '/other' })
    expect(await delivery.getAttribute('href')).to.include(`webhook=${id}&delivery=`)
    await delivery.click()
    await page.getByRole('link', { name: /^[0-9a-f-]{36}$/ }).click()
    await page.getByRole('table', { name: 'Deliveries of the event' }).waitFor()
    await page.getByRole('link', { name: 'Events', exact: true }).last().click()
    await rows.nth(1).waitFor()
  })

  it('shows the counts of all states of an event, in a narrow column too', async () => {
    const { dataSource, member } = area.stage
    const eventId = await publish('customer:updated')
    for (const state of ['failed', 'waiting']) {
      const { id } = await createWebhookRow(dataSource, {
        organisationId: member.organisationId,
        url: 'https://hooks.example.com/',
        enabled: false,
      })
      await dataSource.query(
        `INSERT INTO delivery (id, event_id, webhook_id, organisation_id, state, attempts, next_attempt_at, sweep_at,
                               workflow_started_at, completed_at)
         SELECT uuidv7(), $1, $2, $3, $4, 7, due, due, now(), CASE WHEN $4 = 'failed' THEN now() END
           FROM (SELECT CASE WHEN $4 = 'waiting' THEN now() + interval '2 hours' END AS due) d`,
        [eventId, id, member.organisationId, state],
      )
    }
    const { page } = await area.signIn(member, {
      path: '/developer?view=events&eventKey=customer:updated',
      viewport: { width: 1024, height: 800 },
    })
    const counts = page.getByRole('table', { name: 'Events' }).locator('td.counts').first()
    await counts.getByText('1 completed').waitFor()
    const cell = (await counts.boundingBox())!
    for (const words of ['1 permanently failed', '1 waiting for retry', '1 completed']) {
      const box = (await counts.getByText(words).boundingBox())!
      expect(box.x + box.width, words).to.be.at.most(cell.x + cell.width)
    }
  })

  it('shows an event without its payload to a member that may only publish', async () => {
    const eventId = await publish('comment:created', 'trace-of-a-comment')
    const { organisationId } = area.stage.member
    const permissions = ['event:publish', 'webhook:read']
    const publisher = await createMember(area.stage.dataSource, { organisationId, permissions })
    const { page } = await area.signIn(publisher, { path: `/developer?view=events&event=${eventId}` })
    await page.getByText('The payload is only for members with the permission of comment:created.').waitFor()
    await page.getByRole('region', { name: 'Ids' }).getByText('trace-of-a-comment').waitFor()
    expect(await page.getByRole('region', { name: 'Payload' }).count()).to.equal(0)
  })

  it('erases a payload after saying what happens, and shows when and by whom on the pages of event and delivery', async () => {
    const { stage } = area
    stage.answerWith((_index, _post, response) => {
      response.writeHead(503).end('what was answered')
      return null
    })
    const eventId = await publish('comment:created')
    const { page } = await area.signIn(stage.member, { path: `/developer?view=events&event=${eventId}` })
    const deliveries = page.getByRole('table', { name: 'Deliveries of the event' })
    await deliveries.getByText('Waiting for retry').first().waitFor()
    await page.getByRole('button', { name: 'Erase payload' }).click()
    const dialog = page.getByRole('dialog', { name: 'Erase payload' })
    expect(await dialog.innerText())
      .to.include('gone for good')
      .and.to.include('Deliveries that are open are stopped')
    await dialog.getByRole('button', { name: 'Erase' }).click()
    const note = page.getByText(/Payload erased on .* by you\./)
    await note.waitFor()
    expect(await page.getByRole('region', { name: 'Payload' }).count()).to.equal(0)
    expect(await page.getByRole('button', { name: 'Erase payload' }).count()).to.equal(0)
    await deliveries.getByRole('link').first().click()
    await page.getByRole('heading', { name: 'comment:created' }).waitFor()
    await note.waitFor()
    await page.locator('.note.stop').getByText('Stopped: its payload was erased').waitFor()
    await page.getByText('What was answered is erased.').waitFor()
    expect(await page.getByRole('button', { name: 'Retry now' }).count()).to.equal(0)
    expect(await page.getByRole('button', { name: 'Copy as curl' }).count()).to.equal(0)
  })

  it('says when there is no such event', async () => {
    const { page } = await area.signIn(area.stage.member, { path: '/developer?view=events&event=x' })
    await page.getByText('This event cannot be shown').waitFor()
  })
})

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
