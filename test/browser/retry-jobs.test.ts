import { expect } from 'chai'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'

describe('retry jobs in the developer area', () => {
  const area = useDeveloperArea()

  const webhook = () => createCommentWebhook(area, '/jobs')
  const backlog = (webhookId: string, state: 'failed' | 'waiting', count: number) =>
    writeBacklogOf(area, webhookId, state, count)

  it('are listed with their outcome after their dialog was closed, newest first and in pages', async () => {
    const { stage, posthorn } = area
    const { organisationId, apiKey } = stage.member
    let count = 0
    stage.answerWith(() => (count++ % 3 === 0 ? 503 : 200))
    const { id } = await webhook()
    await backlog(id, 'failed', 3)
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
