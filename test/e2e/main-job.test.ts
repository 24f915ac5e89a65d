import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { verify } from '@octokit/webhooks-methods'
import { expect } from 'chai'
import { deliveryWorkflowId } from '../../src/temporal/workflows.ts'
import {
  type Answer,
  type Certificate,
  createCertificate,
  createReceiver,
  type Receiver,
} from '../helpers/receivers/receiver.ts'
import { eventually } from '../helpers/eventually.ts'
import { createMember, type TestMember } from '../helpers/database/factories.ts'
import { type PosthornProcess, startPosthorn } from '../helpers/processes/posthorn.ts'
import { testServers, useTemporalClient } from '../helpers/runner/servers.ts'
import { useDatabase } from '../helpers/database/database.ts'

describe('the main job, on a real Temporal server', function () {
  const taskQueue = `e2e-${randomUUID()}`
  const database = useDatabase()
  let certificate: Certificate
  let posthorn: PosthornProcess
  let member: TestMember
  const temporal = useTemporalClient()
  let receiver: Receiver
  let answer: Answer

  before(async () => {
    const { temporalAddress } = testServers()
    certificate = await createCertificate()
    const env = { NODE_EXTRA_CA_CERTS: certificate.file }
    posthorn = await startPosthorn({ databaseUrl: database.url, temporalAddress, taskQueue, env })
  })
  after(async () => {
    expect(await posthorn.stop()).to.equal(0)
  })
  beforeEach(async () => {
    member = await createMember(database.dataSource)
    answer = () => 200
    receiver = await createReceiver({ tls: certificate, answer: (...args) => answer(...args) })
  })
  afterEach(() => receiver.close())

  const call = (method: string, path: string, body?: unknown) =>
    posthorn.call(method, `/api/orgs/${member.organisationId}${path}`, { apiKey: member.apiKey, body })
  const createWebhook = async () => {
    const created = await call('POST', '/webhooks', {
      url: receiver.url,
      subscribedEventKeys: ['*'],
      enabled: true,
    })
    expect(created.status, created.text).to.equal(201)
    return created.json as { id: string; signingSecret: string }
  }
  const publish = async (data: object = { id: 'cus_é😀' }) => {
    const published = await call('POST', '/events', { event: 'customer:created', data })
    expect(published.status, published.text).to.equal(202)
    const { id, deliveries } = published.json as { id: string; deliveries: { id: string }[] }
    return { eventId: id, deliveryId: deliveries[0]!.id }
  }
  const stateOf = async (eventId: string) => {
    const { json } = await call('GET', `/events/${eventId}`)
    return (json as { deliveries: { state: string; attemptCount: number }[] }).deliveries[0]!
  }

  it('delivers a published event over TLS, with a signature that independent code verifies', async () => {
    const { signingSecret } = await createWebhook()
    const { eventId, deliveryId } = await publish()
    const post = await eventually(() => {
      const [arrived] = receiver.postsOf(deliveryId)
      if (arrived === undefined) throw new Error('nothing has arrived')
      return arrived
    })
    const signature = String(post.headers['x-webhook-signature'])
    expect(await verify(signingSecret, post.body.toString('utf8'), signature)).to.equal(true)
    const openssl = execFileSync('openssl', ['dgst', '-sha256', '-hmac', signingSecret], {
      input: post.body,
    }).toString()
    expect(`sha256=${openssl.trim().split(' ').at(-1)!}`).to.equal(signature)
    expect(JSON.parse(post.body.toString('utf8'))).to.deep.include({
      event: 'customer:created',
      data: { id: 'cus_é😀' },
    })
    await eventually(async () =>
      expect(await stateOf(eventId)).to.include({ state: 'completed', attemptCount: 1 }),
    )
  })

  it('shows id, summary, search attributes and details of the wait in the Temporal UI', async () => {
    answer = () => 503
    const webhook = await createWebhook()
    const { eventId, deliveryId } = await publish()
    await eventually(async () =>
      // Eight seconds to the next.
      expect(await stateOf(eventId)).to.include({ state: 'waiting', attemptCount: 4 }),
    )
    const workflowId = deliveryWorkflowId(deliveryId)
    const query = `WebhookId = '${webhook.id}' AND OrganisationId = '${member.organisationId}' AND EventKey = 'customer:created' AND DeliveryState = 'waiting'`
    await eventually(async () => {
      const found = []
      for await (const execution of temporal.workflow.list({ query })) found.push(execution.workflowId)
      expect(found).to.deep.equal([workflowId])
    })
    const handle = temporal.workflow.getHandle(workflowId)
    expect(await (await handle.describe()).staticSummary()).to.equal(`customer:created → ${receiver.url}`)
    await eventually(async () => {
      const { attemptCount: attempts } = await stateOf(eventId)
      const metadata = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata')
      expect(metadata.currentDetails)
        .to.include(`waiting for attempt ${attempts + 1} of 10`)
        .and.include('HTTP 503')
        .and.match(/Next attempt \| \d{4}-/)
      const shown = { state: 'waiting', attempts, lastOutcome: 'HTTP 503' }
      expect(await handle.query('deliveryState')).to.deep.include(shown)
    })
    await handle.terminate('end of the test')
  })

  it('serves no metrics unless a port is set for them', async () => {
    expect(posthorn.log()).to.include('"metricsUrl":null')
    expect((await posthorn.call('GET', '/metrics')).status).to.equal(404)
  })
})
