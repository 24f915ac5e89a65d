import { expect } from 'chai'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'
import { publishRow } from '../helpers/database/factories.ts'

describe('retry jobs in the developer area', () => {
  const area = useDeveloperArea()

  it('are listed with their outcome after their dialog was closed, newest first and in pages', async () => {
    const { stage, posthorn } = area
    const { organisationId, apiKey } = stage.member
    let count = 0
    stage.answerWith(() => (count++ % 3 === 0 ? 503 : 200))
    const { id } = await createCommentWebhook(area, '/jobs')
    await writeBacklogOf(area, id, 'failed', 3)
    for (let index = 0; index < 20; index++)
      await posthorn.call('POST', `/api/orgs/${organisationId}/webhooks/retry-deliveries`, {
        apiKey,
        body: { mode: 'stopped' },
      })
    const { page } = await area.signIn(stage.member, { path: `/developer?webhook=${id}` })
    await page.getByRole('button', { name: 'Retry failed' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Retry failed (3)' }).click()
    await dialog.getByText('3 of 3 deliveries attempted').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('link', { name: 'Retry jobs' }).click()
    await page.getByRole('heading', { level: 1, name: 'Retry jobs' }).waitFor()
    const rows = page.getByRole('table', { name: 'Retry jobs' }).locator('tbody').getByRole('row')
    await rows.nth(19).waitFor()
    const first = rows.first()
    await first.getByText('3 of 3 deliveries attempted: 2 succeeded, 1 failed').waitFor()
    expect(await first.innerText()).to.match(/^Retry failed\s.*\/jobs\s+Done\s/s)
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByText('Page 2').waitFor()
    await rows.nth(1).waitFor({ state: 'detached' })
    expect(await rows.first().innerText()).to.include('All enabled webhooks')
  })
})

describe('what a retry costs, in the developer area', () => {
  const area = useDeveloperArea()

  it('is said before it is confirmed: which attempt it makes, and what follows if that fails', async () => {
    const { stage } = area
    const { id } = await createCommentWebhook(area, '/prices')
    const waiting = await writeBacklogOf(area, id, 'waiting', 4)
    await writeBacklogOf(area, id, 'failed', 1)
    for (const [index, attempts] of [5, 9, 9].entries())
      await stage.dataSource.query('UPDATE delivery SET attempts = $2 WHERE id = $1', [
        waiting[index],
        attempts,
      ])
    const { page } = await area.signIn(stage.member, {
      path: `/developer?webhook=${id}&delivery=${waiting[0]!}`,
    })
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Retry now' }).click()
    await dialog
      .getByText('This makes attempt 6 of 10 now. If it fails, the next follows 30 minutes later.')
      .waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.goto(`${area.posthorn.url}/developer?webhook=${id}&tab=deliveries`)
    await page.getByRole('button', { name: `Retry delivery …${waiting[1]!.slice(-8)}` }).click()
    await dialog
      .getByText('This makes attempt 10 of 10 now. If it fails, the delivery is permanently failed.')
      .waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('button', { name: 'Force retry' }).click()
    await dialog.getByRole('button', { name: 'Force retry (5)' }).waitFor()
    expect(await dialog.getByRole('listitem').allInnerTexts()).to.deep.equal([
      '1 makes attempt 6 of 10; if it fails, the next follows 30 minutes later',
      '1 makes attempt 8 of 10; if it fails, the next follows 6 hours later',
      '2 make attempt 10 of 10; if it fails, the delivery is permanently failed',
    ])
    expect(stage.receiver.postsOf(waiting[0]!)).to.have.length(0)
  })
})

describe('past events in the developer area', () => {
  const area = useDeveloperArea()

  const publish = async (count: number): Promise<void> => {
    const { dataSource, member } = area.stage
    for (let index = 0; index < count; index++)
      await publishRow(dataSource, member.organisationId, { eventKey: 'comment:created' })
  }

  it('are counted before they are sent to a webhook that is newer, and followed until they are there', async () => {
    await publish(3)
    const { id } = await createCommentWebhook(area, '/replay')
    const { page } = await area.signIn(area.stage.member, { path: `/developer?webhook=${id}` })
    await page.getByRole('button', { name: 'Send past events' }).click()
    const dialog = page.getByRole('dialog', { name: 'Send past events' })
    await dialog.getByText('3 events from').waitFor()
    await dialog.getByLabel('Event key').fill('invoice:paid')
    await dialog.getByLabel('Event key').press('Enter')
    await dialog.getByText('The webhook is not subscribed to invoice:paid.').waitFor()
    await dialog.getByLabel('Event key').fill('')
    await dialog.getByLabel('Event key').press('Enter')
    await dialog.getByRole('button', { name: 'Send (3)' }).click()
    await page.getByText('3 of 3 deliveries attempted: 3 succeeded, 0 failed').waitFor()
    expect(area.stage.receiver.posts.filter(({ path }) => path === '/replay')).to.have.length(3)
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.getByRole('button', { name: 'Send past events' }).click()
    await dialog.getByText('No event from').waitFor()
    await dialog.getByLabel('Also what it already had').check()
    await dialog.getByRole('button', { name: 'Send (3)' }).waitFor()
  })

  it('are no longer sent once the user cancels', async () => {
    const { stage } = area
    await publish(40)
    const { id } = await createCommentWebhook(area, '/cancelled')
    const { page } = await area.signIn(stage.member, { path: `/developer?webhook=${id}` })
    await page.getByRole('button', { name: 'Send past events' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: /^Send \(4\d\)$/ }).click()
    const replay = page.getByRole('region', { name: 'Replay of past events' })
    await replay.getByRole('button', { name: 'Cancel' }).click()
    await replay.getByText('Cancelled').waitFor()
    expect(stage.receiver.posts.filter(({ path }) => path === '/cancelled').length).to.be.below(40)
  })
})
