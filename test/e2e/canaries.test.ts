import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { TEST_KEY_RING } from '../helpers/database/factories.ts'
import { textsOfTables } from '../helpers/database/database.ts'
import { readableHistory } from '../helpers/temporal/history.ts'
import { createMailServer, type MailServer } from '../helpers/notifications/mail-server.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useTemporalClient } from '../helpers/runner/servers.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const PAYLOAD = 'canary-payload-4711'
const RECEIVER_TEXT = 'canary-receiver-4711'
const URL_TOKEN = 'canary-token-4711'
const SMTP_PASSWORD = 'canary-password-4711'

/** Everything there is about a run: what leaked would be somewhere in it. */
describe('the secrets after a full run', () => {
  const client = useTemporalClient()
  let stage: Stage
  let mail: MailServer
  let posthorn: PosthornProcess
  let signingSecret: string
  let answers: string

  before(async () => {
    stage = await createStage()
    mail = await createMailServer({ auth: { user: 'posthorn', password: SMTP_PASSWORD } })
    posthorn = await stage.start({
      env: {
        LOG_LEVEL: 'debug',
        POSTHORN_NOTIFY_AFTER_SECONDS: '1',
        SMTP_HOST: mail.host,
        SMTP_PORT: String(mail.port),
        SMTP_TLS: 'none',
        SMTP_USER: 'posthorn',
        SMTP_PASSWORD,
      },
    })
    answers = await fullRun()
  })
  after(async () => {
    await stage.close()
    await mail.close()
  })

  /** Creates, publishes, fails, notifies, retries and is refused; returns every answer but those that show a secret. */
  async function fullRun(): Promise<string> {
    const { organisationId, apiKey } = stage.member
    const base = `/api/orgs/${organisationId}`
    const texts: string[] = []
    const call = async (method: string, path: string, body?: unknown, key = apiKey) => {
      const answered = await posthorn.call(method, `${base}${path}`, { apiKey: key, body })
      texts.push(answered.text)
      return answered
    }
    stage.answerWith((_index, _post, response) => {
      response.writeHead(500).end(RECEIVER_TEXT)
      return null
    })
    const url = `${stage.receiver.url}?token=${URL_TOKEN}`
    const webhook = { url, subscribedEventKeys: ['invoice:paid'], enabled: true }
    const created = await posthorn.call('POST', `${base}/webhooks`, { apiKey, body: webhook })
    const { id } = created.json as { id: string }
    signingSecret = (created.json as { signingSecret: string }).signingSecret
    const published = await call('POST', '/events', {
      event: 'invoice:paid',
      data: { invoice: { id: PAYLOAD }, payment: { id: PAYLOAD } },
    })
    expect(published.status, published.text).to.equal(202)
    const { deliveries } = published.json as { deliveries: { id: string; webhookId: string }[] }
    const deliveryId = deliveries.find(({ webhookId }) => webhookId === id)!.id
    await eventually(() => expect(mail.mails.length).to.be.at.least(1))
    await call('GET', `/webhooks/${id}/signing-secret`, undefined, 'phk_wrong_key_4711_4711')
    await call('PATCH', `/webhooks/${id}`, { url: `http://10.0.0.1/${signingSecret}`, secret: signingSecret })
    await call('POST', '/events', { event: signingSecret, data: apiKey })
    await call('POST', `/webhooks/${id}/deliveries/${deliveryId}/retry`)
    await call('POST', `/webhooks/${id}/discard-failed`)
    await call('POST', '/webhooks/retry-deliveries', { mode: 'force' })
    await call('DELETE', `/webhooks/${id}`)
    return texts.join('\n')
  }

  const secrets = (): [name: string, text: string][] => [
    ['the signing secret', signingSecret],
    ['the API key', stage.member.apiKey],
    ['the encryption key', TEST_KEY_RING.split(':')[1]!],
    ['the password of the mail server', SMTP_PASSWORD],
  ]

  it('are not in the log, even at level debug', async () => {
    const log = await eventually(() => {
      const text = posthorn.log()
      expect(text).to.include('delivery.attempted').and.to.include('notification.sent')
      return text
    })
    for (const [name, text] of [
      ...secrets(),
      ['payload', PAYLOAD],
      ['receiver', RECEIVER_TEXT],
      ['URL', URL_TOKEN],
      ['signature', 'sha256='],
    ])
      expect(log, name).not.to.include(text)
  })

  it('are not in the answers', () => {
    for (const [name, text] of secrets().slice(1)) expect(answers, name).not.to.include(text)
    expect(answers).not.to.include(signingSecret)
  })

  it('are not in Temporal', async () => {
    const seen = new Set<string>()
    await eventually(async () => {
      const query = `OrganisationId = '${stage.member.organisationId}'`
      for await (const { workflowId, runId, type } of client.workflow.list({ query })) {
        const history = await client.workflow.getHandle(workflowId, runId).fetchHistory()
        const text = readableHistory(history)
        seen.add(type)
        for (const [name, secret] of [
          ...secrets(),
          ['payload', PAYLOAD],
          ['receiver', RECEIVER_TEXT],
          ['URL', URL_TOKEN],
          ['signature', 'sha256='],
        ])
          expect(text, `${name} in ${workflowId}`).not.to.include(secret)
      }
      expect([...seen]).to.have.members(['deliverEvent', 'incident', 'retryDeliveries'])
    })
  })

  it('are not in any table, and the payload only in the events', async () => {
    const tables = await textsOfTables(stage.dataSource)
    expect(tables.size).to.be.above(12)
    for (const [name, text] of tables) {
      for (const [what, secret] of secrets()) expect(text, `${what} in ${name}`).not.to.include(secret)
      if (name !== 'event') expect(text, `payload in ${name}`).not.to.include(PAYLOAD)
      if (name === 'audit_entry' || name === 'notification') expect(text, name).not.to.include(URL_TOKEN)
    }
  })

  it('are not in the mails', () => {
    const text = mail.mails
      .map(({ raw, parsed }) => `${raw}\n${parsed.text ?? ''}\n${parsed.html ?? ''}`)
      .join('\n')
    for (const [name, secret] of [
      ...secrets(),
      ['payload', PAYLOAD],
      ['receiver', RECEIVER_TEXT],
      ['URL', URL_TOKEN],
    ])
      expect(text, name).not.to.include(secret)
  })
})
