import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

const ANSWER_DELAY_MS = 2_000
/** One of so many answers is a 503. */
const REFUSED_EVERY = 10

describe('the developer area on a slow API that refuses now and then', function () {
  const area = useDeveloperArea()

  it('keeps the selection, tells how old it is, and follows a retry to its end', async () => {
    const { stage } = area
    const { dataSource, member } = stage
    const { organisationId } = member
    stage.answerWith(() => 200)
    const url = stage.receiver.url.replace('/hook', '/slow')
    const { id } = await createWebhookRow(dataSource, { organisationId, url })
    const ids = await writeBacklog(dataSource, { organisationId, webhookId: id, state: 'failed', count: 6 })
    const { page } = await area.signIn()
    page.setDefaultTimeout(60_000)
    let [asked, isRefusing] = [0, false]
    await page.route(/\/api\//, async (route) => {
      await delay(ANSWER_DELAY_MS)
      const isRefused = isRefusing || ++asked % REFUSED_EVERY === 0
      const problem = { title: 'Unavailable', status: 503, code: 'unavailable', detail: 'Not available.' }
      // The page may be closed by then.
      await (isRefused ? route.fulfill({ status: 503, json: problem }) : route.continue()).catch(
        () => undefined,
      )
    })
    await page.goto(`${area.posthorn.url}/developer?webhook=${id}&tab=deliveries`)
    const boxes = ids.slice(0, 3).map((one) => page.getByLabel(`Select delivery …${one.slice(-8)}`))
    for (const box of boxes) await box.check()
    const bulk = page.getByRole('region', { name: 'Selected deliveries', exact: true })
    await bulk.getByText('3 selected').waitFor()

    isRefusing = true
    await page
      .getByText(/No answer for \d+ seconds?; this is how it stood at/)
      .first()
      .waitFor()
    for (const box of boxes) expect(await box.isChecked()).to.equal(true)
    isRefusing = false
    await page.getByText(/No answer for/).waitFor({ state: 'detached' })
    for (const box of boxes) expect(await box.isChecked()).to.equal(true)

    const job = page.getByRole('region', { name: 'Retry of selected deliveries' })
    const dialog = page.getByRole('dialog')
    await bulk.getByRole('button', { name: 'Retry 3' }).click()
    // A refused request is sent again by the same button.
    while ((await job.count()) === 0) {
      await dialog.getByRole('button', { name: 'Retry (3)' }).click()
      await job.or(dialog.getByRole('alert')).first().waitFor()
    }
    await job.getByText('3 of 3 deliveries attempted: 3 succeeded, 0 failed').waitFor()
  })
})
