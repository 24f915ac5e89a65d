import { expect } from 'chai'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'

describe('what a retry costs, in the developer area', () => {
  const area = useDeveloperArea()

  const backlog = (webhookId: string, state: 'failed' | 'waiting', count: number) =>
    writeBacklogOf(area, webhookId, state, count)

  it('is said before it is confirmed: which attempt it makes, and what follows if that fails', async () => {
    const { stage } = area
    const { id } = await createCommentWebhook(area, '/prices')
    const waiting = await backlog(id, 'waiting', 4)
    await backlog(id, 'failed', 1)
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
