import { expect } from 'chai'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'

const MAX_REQUESTS = 25
const MAX_COMPRESSED_BYTES = 150_000

describe('the first load of a page', () => {
  const area = useDeveloperArea()

  before(async () => {
    const { dataSource, member } = area.stage
    for (let index = 0; index < 10; index++)
      await createWebhookRow(dataSource, {
        organisationId: member.organisationId,
        url: `https://x.example/${index}`,
      })
  })

  for (const [path, heading] of [
    ['/developer', 'Webhooks'],
    ['/docs', 'Authentication'],
  ] as const)
    it(`takes ${MAX_REQUESTS} requests and ${MAX_COMPRESSED_BYTES / 1_000} KB at most for ${path}`, async () => {
      const { page } = await area.signIn()
      const network = await page.context().newCDPSession(page)
      await network.send('Network.enable')
      await network.send('Network.setCacheDisabled', { cacheDisabled: true })
      const requested: string[] = []
      let bytes = 0
      network.on('Network.requestWillBeSent', ({ request }) => requested.push(request.url))
      network.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength))
      await page.goto(`${area.posthorn.url}${path}`, { waitUntil: 'networkidle' })
      await page.getByRole('heading', { name: heading, exact: true }).waitFor()
      expect(requested.length, requested.join('\n')).to.be.greaterThan(3).and.at.most(MAX_REQUESTS)
      expect(bytes).to.be.greaterThan(10_000).and.at.most(MAX_COMPRESSED_BYTES)
    })

  it('takes scripts and styles from the cache when it is opened again', async () => {
    const { page } = await area.signIn()
    await page.goto(`${area.posthorn.url}/developer?view=events`)
    await page.getByRole('heading', { name: 'Events', exact: true }).waitFor()
    const assets = await page.evaluate<{ name: string; transferSize: number }[]>(
      `performance.getEntriesByType('resource').filter(({ name }) => /\\.(js|css)$/.test(name)).map((entry) => entry.toJSON())`,
    )
    expect(assets.map(({ name }) => new URL(name).pathname.replace(/-[^.]{16}\./, '.'))).to.have.members([
      '/assets/bundled/app-main.js',
      '/assets/bundled/app-theme.js',
      '/assets/bundled/developer.css',
    ])
    expect(assets.map(({ transferSize }) => transferSize)).to.deep.equal([0, 0, 0])
  })
})
