import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'
import type { Locator } from 'playwright-core'
import { findOnPath } from '../../src/dev/provision.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { eventually } from '../helpers/eventually.ts'

const run = promisify(execFile)

describe('the API reference at /docs', () => {
  const area = useDeveloperArea()

  const openOperation = async (operationId: string) => {
    const { page } = await area.signIn(area.stage.member, {
      path: `/developer`,
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await page.goto(`${area.posthorn.url}/docs#${operationId}`)
    const operation = page.locator(`#${operationId}[open]`)
    await operation.waitFor()
    return { page, operation }
  }
  const fields = (operation: Locator) => operation.locator('.schema > div > dt > code').allInnerTexts()

  it('shows the body of publishing for every event key, with its example', async () => {
    const { page, operation } = await openOperation('publishEvent')
    const key = operation.getByLabel('Event key of the body')
    expect(await key.inputValue()).to.equal('invoice:paid')
    const { data } = (
      await area.posthorn.call('GET', '/api/event-keys', { apiKey: area.stage.member.apiKey })
    ).json as { data: { key: string }[] }
    const published = data.map((one) => one.key).filter((name) => name !== 'webhook:test')
    expect((await key.locator('option').allInnerTexts()).toSorted()).to.deep.equal(published.toSorted())
    expect(await fields(operation)).to.include.members(['invoice', 'payment', 'paymentStatus'])
    await key.selectOption('customer:created')
    await operation.getByText('"event": "customer:created"').first().waitFor()
    expect(await fields(operation))
      .to.include('firstName')
      .and.not.include('payment')
    const body = page.getByRole('form', { name: 'Try publishEvent' }).getByLabel('Body')
    expect(JSON.parse(await body.inputValue())).to.have.property('event', 'customer:created')
    await page.getByRole('button', { name: 'Send POST' }).and(operation.locator('button')).click()
    await operation.getByRole('status').getByText('202').waitFor()
  })

  it('shows every form of the body of a retry', async () => {
    const { operation } = await openOperation('retryDeliveries')
    const form = operation.getByLabel('Form of the body')
    expect(await form.locator('option').allInnerTexts()).to.deep.equal([
      'Retry all deliveries',
      'Retry named deliveries',
      'Retry filtered deliveries',
    ])
    await form.selectOption('Retry named deliveries')
    expect(await fields(operation))
      .to.include('deliveryIds')
      .and.not.include('filter')
    await operation.getByLabel('curl for retryDeliveries').getByText('"deliveryIds"').waitFor()
  })

  it('gives examples that can be copied and that publish, in curl, JavaScript and Python', async function () {
    const { page, operation } = await openOperation('publishEvent')
    const programs: [language: string, command: string, args: string[]][] = [
      ['curl', 'sh', ['-c']],
      ['JavaScript', 'node', ['--input-type=module', '-e']],
      ['Python', 'python3', ['-c']],
    ]
    for (const [language, command, args] of programs) {
      if (findOnPath(command, process.env) === null) continue
      await operation.getByRole('button', { name: language, exact: true }).click()
      const shown = await operation.getByLabel(`${language} for publishEvent`, { exact: true }).innerText()
      await operation.getByRole('button', { name: `Copy ${language} for publishEvent` }).click()
      const program = await eventually(async () => {
        const copied = await page.evaluate<string>('navigator.clipboard.readText()')
        expect(copied).to.equal(shown)
        return copied
      })
      const env = { ...process.env, POSTHORN_KEY: area.stage.member.apiKey }
      const { stdout } = await run(command, [...args, program], { env, timeout: 60_000 })
      expect(stdout, language).to.match(/"deliveries":\[/)
    }
  })

  it('has a table of contents that leads to every operation, at the side or folded', async () => {
    const { page } = await area.visit('/docs', { viewport: { width: 1440, height: 800 } })
    const contents = page.getByRole('navigation', { name: 'On this page' })
    await contents.getByRole('link', { name: 'Publish an event' }).click()
    await page.locator('#publishEvent[open]').waitFor()
    const links = contents.locator('.wide a')
    expect(await links.count()).to.equal((await page.locator('.operation').count()) + 3)
    const current = contents.locator('.wide [aria-current="location"]')
    expect(await current.allInnerTexts()).to.deep.equal(['Publish an event'])
    expect((await contents.getByRole('link', { name: 'Authentication' }).boundingBox())!.x).to.be.below(300)
    await page.getByLabel('Find an operation').fill('signing')
    await links.nth(1).waitFor({ state: 'detached' })

    await page.setViewportSize({ width: 375, height: 800 })
    await page.getByLabel('Find an operation').fill('')
    expect(await contents.getByRole('link', { name: 'Publish an event' }).isVisible()).to.equal(false)
    await contents.getByText('On this page').click()
    await contents.getByRole('link', { name: 'Delete a webhook' }).click()
    await page.locator('#deleteWebhook[open]').waitFor()
  })
})
