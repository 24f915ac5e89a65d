import { expect } from 'chai'
import { FAILURE_TEXTS } from '../../src/domain/attempt-outcome.ts'
import { createCommentWebhook, writeBacklogOf } from '../helpers/browser/comment-webhook.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

const SELF_SIGNED = "The endpoint's certificate is self-signed."

describe('failures by their cause in the developer area', () => {
  const area = useDeveloperArea()
  let webhookId: string

  /** 38 failed attempts of 19 deliveries, and one of another cause; the incident opened a minute ago. */
  before(async () => {
    const { dataSource, member } = area.stage
    webhookId = (await createCommentWebhook(area, '/causes')).id
    const ids = await writeBacklogOf(area, webhookId, 'waiting', 20)
    await dataSource.query(
      `INSERT INTO attempt (delivery_id, number, webhook_id, trigger, url, started_at, duration_ms, outcome, failure_code, error)
       SELECT id, number, $2, 'schedule', 'https://a.example/', now() - number * interval '10 seconds', 20, 'failed',
              CASE WHEN position = 20 THEN 'timeout' ELSE 'tls_error' END,
              CASE WHEN position = 20 THEN 'No answer within 15 seconds.' ELSE $3 END
         FROM unnest($1::uuid[]) WITH ORDINALITY d (id, position), generate_series(1, 2) number
        WHERE position < 20 OR number = 1`,
      [ids, webhookId, SELF_SIGNED],
    )
    await dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, closed_at)
       SELECT uuidv7(), $1, $2, now() - n * interval '1 minute', CASE WHEN n > 1 THEN now() - n * interval '55 seconds' END
         FROM generate_series(1, 25) n`,
      [member.organisationId, webhookId],
    )
  })
  const at = (tab: string) => ({ path: `/developer?webhook=${webhookId}&tab=${tab}` })

  it('an incident says its cause, since when, what to do, its counts and duration, and links to its deliveries', async () => {
    const { page } = await area.signIn(area.stage.member, at('incidents'))
    const incident = page.locator('.incidents > ul > li').first()
    await incident.getByText('39 failed attempts of 20 deliveries').waitFor()
    await incident.getByText(/^for \d+ (second|minute)s?$/).waitFor()
    const cause = incident.locator('.causes li').first()
    expect(await cause.innerText()).to.match(
      /38 ×\s+The endpoint's certificate is self-signed\.\s+since \d\d:\d\d/,
    )
    await cause.getByText(FAILURE_TEXTS.tls_error.cure).waitFor()
    await cause.getByRole('link', { name: '19 deliveries' }).click()
    await page.getByText('With an attempt that failed with tls_error from').waitFor()
    await page.getByRole('table').getByRole('row').nth(19).waitFor()
    expect(await page.getByRole('table').getByRole('row').count()).to.equal(20)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page.getByText('With an attempt').waitFor({ state: 'detached' })
  })

  it('the overview shows an hour, a day or a week with its unit, causes, and bars that lead to the deliveries', async () => {
    const { page } = await area.signIn(area.stage.member, at(''))
    const activity = page.locator('.activity')
    await activity.getByText('per hour').waitFor()
    await activity.getByText(/0 % of attempts\s+succeeded, 95 of 100 took 20 ms at most/).waitFor()
    const causes = page.getByRole('region', { name: 'Failures by cause' })
    await causes.getByText(SELF_SIGNED).waitFor()
    await activity.getByRole('button', { name: '7 d' }).click()
    await activity.getByText('per 6 hours').waitFor()
    await activity.getByRole('button', { name: '1 h' }).click()
    await activity.getByText('per 5 minutes').waitFor()
    expect(new URL(page.url()).searchParams.get('range')).to.equal('1h')
    await page.reload()
    await activity.getByRole('heading', { name: 'Last hour' }).waitFor()
    await activity.locator('.chart a').last().click()
    await page.getByText('With an attempt from').waitFor()
    expect(new URL(page.url()).searchParams.get('tab')).to.equal('deliveries')
  })

  it('incidents come in pages', async () => {
    const { page } = await area.signIn(area.stage.member, at('incidents'))
    const incidents = page.locator('.incidents > ul > li')
    await incidents.nth(19).waitFor()
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByText('Page 2').waitFor()
    await incidents.nth(5).waitFor({ state: 'detached' })
    expect(await incidents.count()).to.equal(5)
    expect(await page.getByText('Open', { exact: true }).count()).to.equal(0)
  })

  it('an incident that is over says for how many days it lasted', async () => {
    await area.stage.dataSource.query(
      `INSERT INTO incident (id, organisation_id, webhook_id, opened_at, closed_at)
       VALUES (uuidv7(), $1, $2, now() - interval '120 hours', now() - interval '48 hours')`,
      [area.stage.member.organisationId, webhookId],
    )
    const { page } = await area.signIn(area.stage.member, at('incidents'))
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByText('lasted 3 days').waitFor()
  })
})
