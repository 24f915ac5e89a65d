import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { createMember, createWebhookRow } from '../helpers/database/factories.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

describe('one delivery in the developer area', () => {
  const area = useDeveloperArea()

  const newWebhook = async (path = '/other') =>
    (
      await createWebhookRow(area.stage.dataSource, {
        organisationId: area.stage.member.organisationId,
        url: area.stage.receiver.url.replace('/hook', path),
        subscribedEventKeys: ['comment:created'],
      })
    ).id
  const waiting = async (webhookId: string) => {
    const { organisationId } = area.stage.member
    const backlog = {
      organisationId,
      webhookId,
      state: 'waiting',
      count: 1,
      eventKey: 'comment:created',
    } as const
    return (await writeBacklog(area.stage.dataSource, backlog))[0]!
  }
  const at = (webhookId: string, deliveryId: string) => ({
    path: `/developer?webhook=${webhookId}&delivery=${deliveryId}`,
  })

  it('shows what was sent beside what came back, of the latest attempt or of a chosen one', async () => {
    const { stage } = area
    stage.answerWith((index, _post, response) => {
      response
        .writeHead(index === 0 ? 503 : 200, {
          'content-type': 'application/json',
          'x-served-by': `front-${index + 1}`,
        })
        .end(index === 0 ? '{"retry":true}' : '{ "took": 1.50 }')
      return null
    })
    const deliveryId = await stage.publish(area.posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 2 })
    const { page } = await area.signIn(stage.member, at(stage.webhookId, deliveryId))
    const [request, response] = [
      page.getByRole('region', { name: 'Request' }),
      page.getByRole('region', { name: 'Response' }),
    ]
    await request.getByText(stage.receiver.url).waitFor()
    expect(await request.getByRole('region', { name: 'Headers' }).innerText()).to.include(
      `X-Webhook-Event-ID: ${deliveryId}`,
    )
    const sent = stage.receiver.postsOf(deliveryId).at(-1)!
    for (const name of ['user-agent', 'content-length', 'content-type'])
      expect((await request.getByRole('region', { name: 'Headers' }).innerText()).toLowerCase()).to.include(
        `${name}: ${String(sent.headers[name]).toLowerCase()}`,
      )
    await response.getByText('HTTP 200').waitFor()
    await response.getByText('x-served-by: front-2').waitFor()
    expect(await response.getByRole('region', { name: 'Body' }).innerText()).to.equal('{\n  "took": 1.50\n}')
    await page.getByText('Completed; 8 further attempts not needed.').waitFor()
    await page.getByRole('button', { name: 'Attempt 1' }).click()
    await response.getByText('HTTP 503').waitFor()
    await response.getByText('x-served-by: front-1').waitFor()
    expect(await page.getByRole('button', { name: 'Attempt 1' }).getAttribute('aria-pressed')).to.equal(
      'true',
    )
  })

  it('copies the signed request as a curl command, which a shell sends as it was sent', async () => {
    const { stage } = area
    stage.answerWith(() => 200)
    await area.posthorn.call('POST', `/api/orgs/${stage.member.organisationId}/events`, {
      apiKey: stage.member.apiKey,
      body: { event: 'customer:created', data: { name: `O'Brien "$(id)" \\ é` } },
    })
    const { page } = await area.signIn(stage.member, {
      path: `/developer?webhook=${stage.webhookId}&tab=deliveries`,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const table = page.getByRole('table', { name: 'Deliveries' })
    await table.getByRole('row', { name: 'Completed' }).first().getByRole('link').click()
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    await page.getByText('Copied the curl command.').waitFor()
    const command = await page.evaluate<string>('navigator.clipboard.readText()')
    const deliveryId = new URL(page.url()).searchParams.get('delivery')!
    const [sent] = stage.receiver.postsOf(deliveryId)
    const script = `curl() { printf '%s\\0' "$@"; }\n${command}\n`
    const words = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0')
    expect(words).to.include(stage.receiver.url)
    expect(words.at(-2)).to.equal(sent!.body.toString('utf8'))
    expect(words).to.include(`X-Webhook-Signature: ${String(sent!.headers['x-webhook-signature'])}`)
  })

  it('says to a member who may not change the webhook what is lacking for the signed request', async () => {
    const id = await newWebhook()
    const { organisationId } = area.stage.member
    const reader = await createMember(area.stage.dataSource, {
      organisationId,
      permissions: ['webhook:read', 'comment:read'],
    })
    const { page } = await area.signIn(reader, at(id, await waiting(id)))
    await page.getByText('You lack webhook:manage').waitFor()
    expect(await page.getByRole('button', { name: 'Copy as curl' }).count()).to.equal(0)
  })

  it('gives every id to copy, and shows a long trace id whole', async () => {
    const { stage } = area
    stage.answerWith(() => 200)
    const traceId = `trace-${'x'.repeat(100)}-end`
    const published = await area.posthorn.call('POST', `/api/orgs/${stage.member.organisationId}/events`, {
      apiKey: stage.member.apiKey,
      body: { event: 'customer:created', data: { id: 'cus_1' }, traceId },
    })
    const { id: eventId, deliveries } = published.json as { id: string; deliveries: { id: string }[] }
    const { page } = await area.signIn(stage.member, {
      ...at(stage.webhookId, deliveries[0]!.id),
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    const ids = page.getByRole('region', { name: 'Ids' })
    for (const [what, value] of Object.entries({
      organisation: stage.member.organisationId,
      webhook: stage.webhookId,
      event: eventId,
      delivery: deliveries[0]!.id,
      trace: traceId,
    })) {
      await ids.getByRole('button', { name: `Copy ${what} id` }).click()
      await page.getByText(`Copied the ${what} id.`).waitFor()
      expect(await page.evaluate('navigator.clipboard.readText()')).to.equal(value)
    }
    const shown = await ids.getByText(traceId).boundingBox()
    const card = await ids.boundingBox()
    expect(shown!.x + shown!.width).to.be.at.most(card!.x + card!.width)
    expect(shown!.height, 'wrapped').to.be.greaterThan(40)
  })

  it('says why a delivery was stopped and, to a member with full access, who stopped it', async () => {
    const id = await newWebhook()
    const deliveryId = await waiting(id)
    const { page } = await area.signIn(area.stage.member, at(id, deliveryId))
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
    await page.getByText(/Discarded by a user, .+, by you\./).waitFor()
    expect(await page.getByText('not needed').count()).to.equal(0)
    const { organisationId } = area.stage.member
    const reader = await createMember(area.stage.dataSource, {
      organisationId,
      permissions: ['webhook:read', 'comment:read'],
    })
    const { page: other } = await area.signIn(reader, at(id, deliveryId))
    await other.getByText(/Discarded by a user, [^,]+, [^,]+\./).waitFor()
    expect(await other.getByText('by you').count()).to.equal(0)
  })

  it('names webhooks of one host by their paths, in the trail, in dialogs and in labels', async () => {
    const [first, second] = [await newWebhook('/first'), await newWebhook('/second')]
    const { page } = await area.signIn(area.stage.member, at(second, await waiting(second)))
    const trail = page.locator('.crumbs').getByRole('link').last()
    await page.getByText('/second').first().waitFor()
    expect(await trail.innerText()).to.match(/\/second$/)
    await waiting(first)
    await page.goto(`${area.posthorn.url}/developer?webhook=${first}`)
    await page.getByRole('button', { name: 'Force retry' }).click()
    await page.getByRole('dialog', { name: /^Force retry of .+\/first$/ }).waitFor()
  })
})
