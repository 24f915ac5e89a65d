import { expect } from 'chai'
import { incidentWorkflowId } from '../../src/temporal/workflows.ts'
import { searchAttributes } from '../../src/temporal/namespace.ts'
import { eventually } from '../helpers/eventually.ts'
import { TEST_VAPID_PRIVATE_KEY, TEST_VAPID_PUBLIC_KEY } from '../helpers/database/factories.ts'
import { createMailServer, type MailServer } from '../helpers/notifications/mail-server.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { createPushBrowser, readVapid } from '../helpers/notifications/push-browser.ts'
import { createReceiver } from '../helpers/receivers/receiver.ts'
import { useServedStage } from '../helpers/processes/stage.ts'
import { useTemporalClient } from '../helpers/runner/servers.ts'

const NOTIFY_AFTER_S = 3

type IncidentAnswer = {
  id: string
  openedAt: string
  closedAt: string | null
  exhaustedAt: string | null
  notifications: { kind: number; channel: string; recipient: string; state: string; sentAt: string | null }[]
}

describe('incidents, on a real Temporal server with a real mail server', () => {
  let mail: MailServer
  let posthorn: PosthornProcess
  const client = useTemporalClient()

  before(async () => {
    mail = await createMailServer()
  })
  after(() => mail.close())
  const stage = useServedStage(() => ({
    env: {
      POSTHORN_NOTIFY_AFTER_SECONDS: String(NOTIFY_AFTER_S),
      POSTHORN_PUBLIC_URL: 'https://hooks.platform.test',
      SMTP_HOST: mail.host,
      SMTP_PORT: String(mail.port),
      SMTP_TLS: 'none',
      SMTP_FROM: 'posthorn@platform.test',
      VAPID_PRIVATE_KEY: TEST_VAPID_PRIVATE_KEY,
    },
  }))
  beforeEach(() => {
    posthorn = stage.posthorn
    mail.refuse(null)
    mail.mails.length = 0
  })
  // What comes later would be taken for a mail of the next test.
  afterEach(() =>
    eventually(async () => {
      const pending = await stage.dataSource.query<object[]>(
        `SELECT id FROM notification WHERE state = 'pending'`,
      )
      expect(pending).to.have.length(0)
    }),
  )

  const webhookPath = (): string => `/api/orgs/${stage.member.organisationId}/webhooks/${stage.webhookId}`
  const incidents = async (): Promise<IncidentAnswer[]> => {
    const answered = await posthorn.call('GET', `${webhookPath()}/incidents`, { apiKey: stage.member.apiKey })
    expect(answered.status, answered.text).to.equal(200)
    return (answered.json as { data: IncidentAnswer[] }).data
  }

  it('notifies every recipient once that the endpoint keeps failing, and closes when it recovers', async () => {
    stage.answerWith(() => 503)
    const openedBy = await stage.publish(posthorn)
    await eventually(() => expect(mail.mails).to.have.length(2))
    const [incident] = await incidents()
    expect(incident).to.deep.include({ closedAt: null, exhaustedAt: null })
    const openedAt = Date.parse(incident!.openedAt)
    await eventually(async () => {
      const [{ notifications }] = (await incidents()) as [IncidentAnswer]
      expect(notifications.map(({ kind, channel, state }) => [kind, channel, state])).to.deep.equal([
        [1, 'email', 'sent'],
        [1, 'email', 'sent'],
      ])
      for (const { sentAt } of notifications)
        expect(Date.parse(sentAt!) - openedAt).to.be.within(
          NOTIFY_AFTER_S * 1_000,
          NOTIFY_AFTER_S * 1_000 + 30_000,
        )
    })
    const { parsed, envelope } = mail.mails[0]!
    expect(envelope.to).to.have.length(1)
    expect(parsed.subject).to.include('127.0.0.1')
    expect(parsed.text).to.include('503').and.to.include('https://hooks.platform.test/developer')
    expect(parsed.html).to.include('503')

    stage.answerWith(() => 200)
    const retried = await posthorn.call('POST', `${webhookPath()}/deliveries/${openedBy}/retry`, {
      apiKey: stage.member.apiKey,
    })
    expect(retried.status).to.equal(202)
    await eventually(async () => expect((await incidents())[0]!.closedAt).not.to.equal(null))
    await eventually(async () => {
      const { status } = await client.workflow
        .getHandle(incidentWorkflowId(stage.webhookId, incident!.id))
        .describe()
      expect(status.name).to.equal('COMPLETED')
    })
    expect(mail.mails).to.have.length(2)
  })

  it('shows in the Temporal UI which endpoint fails since when, and what is waited for', async () => {
    stage.answerWith(() => 500)
    await stage.publish(posthorn)
    const [incident] = await eventually(async () => {
      const found = await incidents()
      expect(found).to.have.length(1)
      return found
    })
    const workflowId = incidentWorkflowId(stage.webhookId, incident!.id)
    const details = () =>
      eventually(async () => {
        const { userMetadata } = await client.workflowService
          .describeWorkflowExecution({ namespace: 'default', execution: { workflowId } })
          .then(({ executionConfig }) => ({ userMetadata: executionConfig?.userMetadata }))
        return Buffer.from(userMetadata?.summary?.data ?? '').toString()
      })
    expect(await details()).to.include(`failing since ${incident!.openedAt.slice(0, 19)}`)
    const text = await eventually(async () => {
      const metadata = await client.workflow
        .getHandle(workflowId)
        .query<{ currentDetails?: string }>('__temporal_workflow_metadata')
      expect(metadata.currentDetails).to.include('Waiting for a retry | 1')
      return metadata.currentDetails!
    })
    expect(text).to.match(/Waits for \| notification 1 at \d{4}-/)
    await eventually(async () => {
      const metadata = await client.workflow
        .getHandle(workflowId)
        .query<{ currentDetails?: string }>('__temporal_workflow_metadata')
      expect(metadata.currentDetails).to.match(/Notification 1.*\d{4}-.*: 2 sent/)
    })
    const described = await client.workflow.getHandle(workflowId).describe()
    expect(described.typedSearchAttributes.get(searchAttributes.webhookId)).to.equal(stage.webhookId)
    expect(described.typedSearchAttributes.get(searchAttributes.organisationId)).to.equal(
      stage.member.organisationId,
    )
  })

  it('sends a push message that the subscribed browser can read, and forgets a browser that is gone', async () => {
    const { organisationId, apiKey } = stage.member
    const browser = createPushBrowser()
    const service = await createReceiver({ answer: (_index, { path }) => (path === '/gone' ? 410 : 201) })
    const path = `/api/orgs/${organisationId}/push-subscriptions`
    for (const endpoint of ['/browser', '/gone']) {
      const { p256dh, auth } = browser
      const body = { endpoint: new URL(endpoint, service.url).href, keys: { p256dh, auth } }
      expect((await posthorn.call('POST', path, { apiKey, body })).status).to.equal(201)
    }
    stage.answerWith(() => 500)
    await stage.publish(posthorn)
    const message = await eventually(() => {
      const found = service.posts.find((post) => post.path === '/browser')
      expect(found).not.to.equal(undefined)
      return found!
    })
    expect(JSON.parse(browser.decrypt(message.body))).to.include({
      title: `Webhook deliveries to ${new URL(stage.receiver.url).host}/hook are failing`,
    })
    expect(readVapid(String(message.headers.authorization))).to.deep.include({ key: TEST_VAPID_PUBLIC_KEY })
    await eventually(async () => {
      const { data } = (await posthorn.call('GET', path, { apiKey })).json as { data: { endpoint: string }[] }
      expect(data.map(({ endpoint }) => new URL(endpoint).pathname)).to.deep.equal(['/browser'])
      const [{ notifications }] = (await incidents()) as [IncidentAnswer]
      const push = notifications.filter(({ channel }) => channel === 'push')
      expect(push.map(({ state }) => state)).to.have.members(['sent', 'failed'])
    })
    await service.close()
  })

  it('delivers, and closes the incident, while the mail server refuses every recipient', async () => {
    mail.refuse({ at: 'rcpt', code: 451 })
    // Its attempts come at 0, 1, 3 and 7 seconds.
    stage.answerWith((index) => (index < 3 ? 500 : 200))
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 4 })
    const [incident] = await incidents()
    expect(incident!.closedAt).not.to.equal(null)
    await eventually(async () => {
      const [{ notifications }] = (await incidents()) as [IncidentAnswer]
      expect(notifications.map(({ state }) => state)).to.deep.equal(['failed', 'failed'])
    })
    expect(mail.mails).to.have.length(0)
  })
})
