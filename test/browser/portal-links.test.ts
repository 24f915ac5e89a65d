import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createPortalLink, operatorKeysText, portalLinkOf } from '../helpers/api/operator.ts'
import { useDeveloperArea } from '../helpers/browser/browser.ts'
import { createEmbedding, type Embedding } from '../helpers/browser/embedding.ts'
import { createMember } from '../helpers/database/factories.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'

describe('portal links in a browser', () => {
  const area = useDeveloperArea()

  /** Creates a link to a page of the developer area. */
  async function createLink(
    path = '/',
    posthorn: Pick<PosthornProcess, 'call'> = area.posthorn,
  ): Promise<string> {
    const created = await createPortalLink(posthorn, area.stage.member, { path })
    expect(created.status, created.text).to.equal(201)
    return portalLinkOf(created).url
  }

  it('open the developer area as their member, at the page that they name', async () => {
    const { page } = await area.visit(await createLink(`/webhooks/${area.stage.webhookId}`))
    await page.getByRole('heading', { name: 'Latest attempt' }).waitFor()
    expect(await page.getByRole('banner').innerText()).to.include('Test Member')
    expect(page.url()).to.equal(`${area.posthorn.url}/developer?webhook=${area.stage.webhookId}`)
    await page.reload()
    await page.getByRole('heading', { name: 'Latest attempt' }).waitFor()
  })

  it('leave their token neither in the address nor in the history', async () => {
    const link = await createLink()
    const { page } = await area.visit(link)
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    expect(page.url()).to.equal(`${area.posthorn.url}/developer`)
    await page.goBack()
    expect(page.url()).to.equal('about:blank')
    await page.goForward()
    await page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    expect(page.url()).to.equal(`${area.posthorn.url}/developer`)
    expect(area.posthorn.log()).to.not.include(new URL(link).hash.slice('#portal='.length))
  })

  it('say clearly that they were used or have expired', async () => {
    const used = await createLink()
    const first = await area.visit(used)
    await first.page.getByRole('heading', { name: 'Webhooks' }).waitFor()
    const expired = await createLink()
    await area.stage.dataSource.query(`UPDATE portal_link SET expires_at = now() - interval '1 second'`)
    for (const link of [used, expired, `${area.posthorn.url}/developer#portal=nonsense`]) {
      const { page } = await area.visit(link)
      await page.getByRole('heading', { name: 'This link is no longer valid' }).waitFor()
      expect(await page.getByRole('alert').innerText()).to.include('expired or was already used')
      expect(page.url()).to.not.include('portal=')
      expect(await page.context().cookies()).to.deep.equal([])
    }
  })

  it('ask where another member is signed in, and have other tabs stop showing it', async () => {
    const { organisationId } = area.stage.member
    const victim = await createMember(area.stage.dataSource, { organisationId })
    await area.stage.dataSource.query(`UPDATE member SET name = 'Victim' WHERE id = $1`, [victim.memberId])
    const { page } = await area.signIn(victim)
    // Its next request would find the session ended before the other tab says so.
    await page.route('**/api/orgs/**', (route) => route.abort())
    const second = await page.context().newPage()
    await second.goto(await createLink())
    await second.getByRole('heading', { name: 'Change the account?' }).waitFor()
    expect(await second.getByRole('main').innerText()).to.match(/signed in as Victim of .* as Test Member of/)
    await second.getByRole('button', { name: 'Stay Victim' }).click()
    await second.getByRole('heading', { name: 'Webhooks' }).waitFor()
    expect(await second.getByRole('banner').innerText()).to.include('Victim')
    await second.goto(await createLink())
    await second.getByRole('button', { name: 'Change to Test Member' }).click()
    await second.getByRole('banner').getByText('Test Member').waitFor()
    await page.getByRole('heading', { name: 'Signed in as another member' }).waitFor()
    expect(await page.getByRole('banner').count()).to.equal(0)
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.getByRole('banner').getByText('Test Member').waitFor()
    await second.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('You signed out in another tab.').waitFor()
  })

  it('have a tab whose area is still loading not show it to another member', async () => {
    const { organisationId } = area.stage.member
    const { page } = await area.signIn(await createMember(area.stage.dataSource, { organisationId }))
    let isLoading = false
    await page.route('**/api/event-keys', () => {
      isLoading = true
    })
    await page.reload()
    await eventually(() => expect(isLoading).to.equal(true))
    const second = await page.context().newPage()
    await second.goto(await createLink())
    await second.getByRole('button', { name: 'Change to Test Member' }).click()
    await second.getByRole('banner').getByText('Test Member').waitFor()
    await page.getByRole('heading', { name: 'Signed in as another member' }).waitFor()
  })

  it('open also where the developer area is open already', async () => {
    const { page } = await area.signIn()
    await page.goto(await createLink(`/webhooks/${area.stage.webhookId}`))
    await page.getByRole('heading', { name: 'Latest attempt' }).waitFor()
    expect(page.url()).to.not.include('portal=')
  })

  it('open also in a browser that keeps no data of the page, and say that it keeps no cookie', async () => {
    const { page } = await area.visit('about:blank')
    await page.addInitScript(`
      const refuse = () => { throw new DOMException('The operation is insecure.', 'SecurityError') }
      window.BroadcastChannel = function () { refuse() }
      for (const name of ['localStorage', 'sessionStorage']) Object.defineProperty(window, name, { get: refuse })
    `)
    await page.goto(await createLink(`/webhooks/${area.stage.webhookId}`))
    await page.getByRole('heading', { name: 'Latest attempt' }).waitFor()
    await page.route('**/api/session', (route) => route.fulfill({ status: 401 }))
    await page.goto('about:blank')
    await page.goto(await createLink())
    await page.getByText('This browser keeps no cookie for this page').waitFor()
    expect(page.url()).to.not.include('portal=')
  })

  it('have a tab that tries again not show its area to another member', async () => {
    const { organisationId } = area.stage.member
    const { page } = await area.signIn(await createMember(area.stage.dataSource, { organisationId }))
    await page.clock.install()
    let asked = 0
    await page.route('**/api/event-keys', (route) => {
      asked++
      return route.fulfill({ status: 503 })
    })
    await page.reload()
    await page.getByText('Trying again').waitFor()
    // From here on it tries again only where the test lets time pass.
    await page.clock.pauseAt(Date.now() + 60_000)
    const second = await page.context().newPage()
    await second.goto(await createLink())
    await second.getByRole('button', { name: 'Change to Test Member' }).click()
    await page.getByRole('heading', { name: 'Signed in as another member' }).waitFor()
    const askedBefore = asked
    await page.clock.runFor(60_000)
    await second.getByRole('banner').getByText('Test Member').waitFor()
    await page.getByRole('heading', { name: 'Signed in as another member' }).waitFor()
    expect(asked).to.equal(askedBefore)
  })

  describe('embedded in a page of another site, over https', () => {
    let embedding: Embedding
    let posthorn: PosthornProcess
    before(async () => {
      embedding = await createEmbedding()
      posthorn = await area.stage.start({
        command: 'api',
        env: {
          POSTHORN_OPERATOR_KEYS: operatorKeysText(),
          POSTHORN_PUBLIC_URL: embedding.hooks,
          POSTHORN_FRAME_ANCESTORS: embedding.platform,
        },
      })
      embedding.forwardTo(posthorn.url)
    })
    after(async () => {
      await posthorn.stop()
      await embedding.close()
    })

    const pageWith = (embedder: string, url: string) =>
      `${embedder}/?${new URLSearchParams({ url }).toString()}`
    const embed = (embedder: string, url: string) =>
      area.visit(pageWith(embedder, url), { ignoreHTTPSErrors: true })
    /** Forgets the browser's complaints, which were expected; there may be several, and they may come late. */
    const leave = (page: Page, faults: string[]) => {
      page.removeAllListeners('console')
      faults.splice(0)
    }
    const isEnabled = async () => {
      const rows = await area.stage.dataSource.query<{ enabled: boolean }[]>(
        'SELECT enabled FROM webhook WHERE id = $1',
        [area.stage.webhookId],
      )
      return rows[0]?.enabled
    }

    it('show the area and let it act', async () => {
      const { page } = await embed(embedding.platform, await createLink('/webhooks', posthorn))
      const frame = page.frameLocator('iframe')
      const before = await isEnabled()
      await frame.getByRole('switch').click()
      await frame.getByRole('button', { name: 'Switch off' }).click()
      await eventually(async () => expect(await isEnabled()).to.equal(before === false))
      expect(page.frames()[1]?.url()).to.equal(`${embedding.hooks}/developer`)
    })

    it('keep the session in a cookie of this site around the frame alone', async () => {
      const { page } = await embed(embedding.platform, await createLink('/', posthorn))
      await page.frameLocator('iframe').getByRole('heading', { name: 'Webhooks' }).waitFor()
      const [cookie, ...others] = await page.context().cookies()
      expect(others).to.deep.equal([])
      expect(cookie).to.include({
        name: '__Host-posthorn_framed_session',
        sameSite: 'None',
        secure: true,
        httpOnly: true,
        partitionKey: 'https://platform.test',
      })
      await page.goto(`${embedding.hooks}/developer`)
      await page.getByLabel('API key').waitFor()
    })

    it('are not opened in a page of a third site, nor below one', async () => {
      const link = await createLink('/', posthorn)
      const nested = pageWith(embedding.platform, link)
      for (const url of [link, nested]) {
        const { page, faults } = await embed(embedding.stranger, url)
        await eventually(() => expect(faults.join()).to.match(/frame-ancestors/))
        await eventually(() => expect(page.frames().at(-1)?.url()).to.match(/^chrome-error:/))
        leave(page, faults)
      }
      const { page } = await embed(embedding.platform, link)
      await page.frameLocator('iframe').getByRole('heading', { name: 'Webhooks' }).waitFor()
    })

    it('are opened in no page at all where no origin is configured', async () => {
      const { page, faults } = await embed(embedding.platform, await createLink())
      await eventually(() => expect(faults.join()).to.match(/frame-ancestors 'none'/))
      leave(page, faults)
    })

    it('let no page around the frame act with the session', async () => {
      const { page } = await embed(embedding.platform, await createLink('/', posthorn))
      await page.frameLocator('iframe').getByRole('heading', { name: 'Webhooks' }).waitFor()
      const { organisationId } = area.stage.member
      const webhook = `${embedding.hooks}/api/orgs/${organisationId}/webhooks/${area.stage.webhookId}`
      for (const [method, url] of [
        ['POST', `${webhook}/test`],
        ['GET', webhook],
      ] as const) {
        const answer = page.waitForResponse(url)
        await page.evaluate(
          ([how, where]) =>
            fetch(where, { method: how, mode: 'no-cors', credentials: 'include' }).then(() => null),
          [method, url] as const,
        )
        expect((await answer).status(), method).to.equal(403)
      }
    })
  })
})
