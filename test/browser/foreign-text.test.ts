import { expect } from 'chai'
import { createMember, createWebhookRow } from '../helpers/database/factories.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

/** Would set `hacked` in a page that takes it for markup, a template or a link. */
const ATTACKS = [
  '<img src=x onerror=hacked=1>',
  '"><svg/onload=hacked=1>',
  "'-hacked=1-'",
  '</pre></script><script>hacked=1</script>',
  '${hacked=1}{{hacked=1}}',
  'javascript:hacked=1',
]
const ATTACK = ATTACKS.join(' ')

describe('foreign text in the developer area', () => {
  const area = useDeveloperArea()

  it('is shown as text everywhere', async () => {
    const { stage, posthorn } = area
    const { dataSource, member } = stage
    const { organisationId } = member
    stage.answerWith((_index, _post, response) => {
      response.writeHead(500, ATTACKS[0], { 'x-served-by': ATTACK, 'content-type': 'text/html' }).end(ATTACK)
      return null
    })
    const url = `${stage.receiver.url}/${encodeURIComponent(ATTACK)}?x=%22%3E'-hacked=1-'&y=\${hacked=1}`
    const webhook = await createWebhookRow(dataSource, { organisationId, url })
    await dataSource.query('UPDATE organisation SET name = $2 WHERE id = $1', [organisationId, ATTACK])
    await dataSource.query('UPDATE member SET name = $2 WHERE id = $1', [member.memberId, ATTACK])
    const published = await posthorn.call('POST', `/api/orgs/${organisationId}/events`, {
      apiKey: member.apiKey,
      body: {
        event: 'comment:created',
        data: { [ATTACK]: ATTACK, list: ATTACKS, '</pre>': { __proto__: ATTACK, text: '\u2028\u0000' } },
        traceId: ATTACKS[1],
        spanId: ATTACKS[0]!.replaceAll(' ', '/'),
        triggeredBy: { id: ATTACK, name: ATTACK },
      },
    })
    expect(published.status, published.text).to.equal(202)
    const { deliveries } = published.json as { deliveries: { id: string; webhookId: string }[] }
    const deliveryId = deliveries.find(({ webhookId }) => webhookId === webhook.id)!.id
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 4 })
    await dataSource.query(
      `INSERT INTO notification (id, incident_id, kind, channel, recipient, state, sent_at)
       SELECT gen_random_uuid(), id, 1, 'email', $2, 'sent', now() FROM incident WHERE webhook_id = $1`,
      [webhook.id, ATTACK],
    )

    const { page } = await area.signIn()
    const unharmed = async () => {
      expect(await page.evaluate('typeof hacked')).to.equal('undefined')
      expect(
        await page.locator('script:not([src^="/assets/"]), [src="x"], svg[onload], iframe, base').count(),
      ).to.equal(0)
      expect(await page.locator('a[href^="javascript:"], img:not([src^="/assets/"])').count()).to.equal(0)
    }
    const banner = await page.getByRole('banner').innerText()
    expect(banner.split(ATTACK), 'names of organisation and member').to.have.length(3)
    const link = page.getByRole('link', { name: '%3Cimg' }).first()
    await link.waitFor()
    await unharmed()

    await link.click()
    const payload = page.getByRole('region', { name: 'Payload' })
    await payload.waitFor()
    expect(await payload.innerText()).to.include(JSON.stringify(ATTACK))
    await page.getByRole('link', { name: 'Incidents' }).click()
    await page.getByText('Who was notified').click()
    await page.getByText(ATTACK).last().waitFor()
    await unharmed()

    await page.getByRole('link', { name: 'Deliveries', exact: true }).click()
    await page.getByRole('table', { name: 'Deliveries' }).getByRole('link').first().click()
    expect(await page.getByRole('region', { name: 'Body of the answer' }).first().innerText()).to.equal(
      ATTACK,
    )
    expect(await page.getByRole('region', { name: 'Headers of the answer' }).first().innerText()).to.include(
      `x-served-by: ${ATTACK}`,
    )
    await page.getByRole('button', { name: 'Raw' }).click()
    await unharmed()
  })

  it('is shown as text in the address too', async () => {
    const { page } = await area.signIn(area.stage.member, {
      path: `/developer?webhook=${encodeURIComponent(ATTACK)}`,
    })
    await page.getByText('No such webhook').waitFor()
    await page.goto(`${area.posthorn.url}/developer?webhook=x&delivery=${encodeURIComponent(`../${ATTACK}`)}`)
    await page.getByText('This delivery cannot be shown').waitFor()
    expect(await page.evaluate('typeof hacked')).to.equal('undefined')
  })

  it('reorders nothing outside of its own element', async () => {
    const { page } = await area.signIn()
    await page.getByRole('banner').waitFor()
    const open = await page.evaluate(
      `[...document.body.querySelectorAll('*')].filter((one) => !one.closest('svg') && getComputedStyle(one).unicodeBidi === 'normal').map((one) => one.localName)`,
    )
    expect(open).to.deep.equal([])
  })

  it('cannot become markup even by a mistake of ours: the policy prevents it', async () => {
    const { page, faults } = await area.signIn(await createMember(area.stage.dataSource))
    const tried = `(() => { try { document.body.innerHTML = '<b>x</b>'; return 'done' } catch (error) { return error.name } })()`
    expect(await page.evaluate(tried)).to.equal('TypeError')
    expect(faults.splice(0).join('\n')).to.include('TrustedHTML')
  })
})
