import { expect } from 'chai'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createCommentWebhook } from '../helpers/browser/comment-webhook.ts'
import { publishRow } from '../helpers/database/factories.ts'

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
