import { expect } from 'chai'
import { TEST_VAPID_PRIVATE_KEY, TEST_VAPID_PUBLIC_KEY } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import { fillIn, useDeveloperArea } from '../helpers/browser/browser.ts'
import { createPushBrowser } from '../helpers/notifications/push-browser.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'

describe('push messages in the developer area', () => {
  const area = useDeveloperArea()
  let posthorn: PosthornProcess
  before(async () => {
    posthorn = await area.stage.start({ command: 'api', env: { VAPID_PRIVATE_KEY: TEST_VAPID_PRIVATE_KEY } })
  })
  afterEach(() => area.stage.dataSource.query('DELETE FROM push_subscription'))
  after(() => posthorn.stop())

  /** Opens the page at the process that has a key. `script` prepares the browser: a test has no push service. */
  async function open(script: string, permissions: string[] = ['notifications']) {
    const visitor = await area.visit('/docs', { permissions })
    await visitor.page.addInitScript(script)
    await visitor.page.goto(`${posthorn.url}/developer?view=notifications`)
    await fillIn(visitor.page, area.stage.member.apiKey)
    await visitor.page.getByRole('heading', { name: 'Push messages in this browser' }).waitFor()
    return visitor
  }
  /** A push service that grants every subscription for the key it is asked with. */
  function pushService(): string {
    const { p256dh, auth } = createPushBrowser()
    const json = JSON.stringify({ endpoint: 'https://push.example.com/send/1', keys: { p256dh, auth } })
    return `{
      let current = null
      PushManager.prototype.getSubscription = async () => current
      PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
        if (applicationServerKey !== '${TEST_VAPID_PUBLIC_KEY}') throw new Error('another key')
        const json = ${json}
        current = { endpoint: json.endpoint, toJSON: () => json, unsubscribe: async () => { current = null } }
        return current
      }
      Object.defineProperty(Notification, 'permission', { get: () => 'granted' })
      Notification.requestPermission = async () => 'granted'
    }`
  }
  const subscribed = async () => {
    const rows = await area.stage.dataSource.query<{ endpoint: string }[]>(
      'SELECT endpoint FROM push_subscription WHERE organisation_id = $1',
      [area.stage.member.organisationId],
    )
    return rows.map(({ endpoint }) => endpoint)
  }

  it('are switched on and off, with a worker that the policy of the page lets start', async () => {
    const { page } = await open(pushService())
    const toggle = page.getByRole('switch', { name: 'Push messages' })
    await toggle.click()
    await page.getByText('Push messages are on in this browser.').waitFor()
    await page.getByRole('switch', { name: 'Push messages', checked: true }).waitFor()
    expect(await subscribed()).to.deep.equal(['https://push.example.com/send/1'])
    await toggle.click()
    await page.getByText('Push messages are off in this browser.').waitFor()
    expect(await subscribed()).to.deep.equal([])
  })

  it('are shown by the worker, which the browser starts for them', async () => {
    const { page } = await open(pushService())
    await page.getByRole('switch', { name: 'Push messages' }).click()
    await page.getByText('Push messages are on in this browser.').waitFor()
    const devTools = await page.context().newCDPSession(page)
    const registrationId = new Promise<string>((resolve) => {
      devTools.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: [registration] }) => {
        if (registration !== undefined) resolve(registration.registrationId)
      })
    })
    await devTools.send('ServiceWorker.enable')
    const message = { title: 'Deliveries fail', body: 'Since 09:26.', url: '/developer?webhook=x', tag: 'i' }
    const pushed = {
      origin: posthorn.url,
      registrationId: await registrationId,
      data: JSON.stringify(message),
    }
    const shown = `navigator.serviceWorker.getRegistration('/assets/app/').then((one) => one.getNotifications())
      .then((all) => all.map(({ title, body, tag, data }) => ({ title, body, tag, url: data })))`
    await eventually(async () => {
      // Chromium drops a message of DevTools for a worker that it has not stored yet. Its tag lets it be shown once.
      await devTools.send('ServiceWorker.deliverPushMessage', pushed)
      expect(await page.evaluate(shown)).to.deep.equal([message])
    })
    await page.getByRole('switch', { name: 'Push messages' }).click()
    await page.getByText('Push messages are off in this browser.').waitFor()
  })

  it('say that this browser does not support them', async () => {
    const { page } = await open('delete globalThis.PushManager')
    await page.getByText('This browser does not support push messages.').waitFor()
    expect(await page.getByRole('switch').count()).to.equal(0)
  })

  it('are read again after an answer that failed', async () => {
    const { page } = await area.signIn()
    await page.clock.install()
    let count = 0
    await page.route('**/push-subscriptions', (route) => (++count === 1 ? route.abort() : route.continue()))
    await page.getByRole('link', { name: 'Notifications' }).click()
    await page.getByText('Posthorn cannot be reached.').waitFor()
    await page.clock.runFor(31_000)
    await page.getByText('Push messages are not set up here').waitFor()
  })

  it('say that the browser refuses them', async () => {
    const { page } = await open(
      "Object.defineProperty(Notification, 'permission', { get: () => 'denied' })",
      [],
    )
    await page.getByText('This browser refuses messages of this page.').waitFor()
    expect(await page.getByRole('switch').count()).to.equal(0)
  })

  it('say that they are not set up where there is no key', async () => {
    const { page } = await area.signIn(area.stage.member, { path: '/developer?view=notifications' })
    await page.getByText('Push messages are not set up here').waitFor()
    expect(await page.getByRole('switch').count()).to.equal(0)
  })

  it('let other browsers of the member be removed', async () => {
    const { organisationId, memberId } = area.stage.member
    await area.stage.dataSource.query(
      `INSERT INTO push_subscription (id, organisation_id, member_id, endpoint, p256dh, auth)
       VALUES (gen_random_uuid(), $1, $2, 'https://updates.example.net/2', 'x', 'y')`,
      [organisationId, memberId],
    )
    const { page } = await open(pushService())
    await page.getByRole('button', { name: 'Remove updates.example.net' }).click()
    await page.getByText('Your other browsers').waitFor({ state: 'detached' })
    expect(await subscribed()).to.deep.equal([])
  })
})
