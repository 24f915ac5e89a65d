import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { testServers, useTemporalClient } from '../helpers/runner/servers.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const DOCUMENT = new URL('../../docs/troubleshooting.md', import.meta.url)
const COMMAND_TIMEOUT_MS = 60_000

const STATEMENTS = [...readFileSync(DOCUMENT, 'utf8').matchAll(/^```sql\n(.*?)^```$/gms)].map(
  ([, statement = '']) => statement,
)

/** The next attempt is due in two hours: what comes within this time came for the signal. */
const AT_ONCE_MS = 60_000

describe('the commands of docs/troubleshooting.md, on a real Temporal server', () => {
  const commands = readCommands()
  const notYetRun = new Set(commands)
  const client = useTemporalClient()
  let stage: Stage
  let posthorn: PosthornProcess
  let deliveryId: string

  before(async () => {
    stage = await createStage()
    stage.answerWith(() => 503)
    posthorn = await stage.start()
    const backlog = { organisationId: stage.member.organisationId, webhookId: stage.webhookId, count: 1 }
    const [written] = await writeBacklog(stage.dataSource, { ...backlog, state: 'waiting' })
    deliveryId = written!
    // It has no workflow yet: the sweep finds that out and starts one, which sleeps until the eighth attempt.
    await stage.dataSource.query('UPDATE delivery SET sweep_at = now() WHERE id = $1', [deliveryId])
  })
  after(() => stage.close())

  /** Runs the one command that has `words` in it, as an operator would paste it, and returns what it prints. */
  const run = async (words: string): Promise<string> => {
    const [command = '', ...others] = commands.filter((candidate) => candidate.includes(words))
    expect([command !== '', others], words).to.deep.equal([true, []])
    notYetRun.delete(command)
    const { temporalCli, temporalAddress } = testServers()
    const script = `temporal() { "$TEMPORAL_CLI" "$@"; }\n${command}`
    const { stdout } = await promisify(execFile)('sh', ['-euc', script], {
      timeout: COMMAND_TIMEOUT_MS,
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        TEMPORAL_CLI: temporalCli,
        TEMPORAL_ADDRESS: temporalAddress,
        WEBHOOK: stage.webhookId,
        DELIVERY: deliveryId,
      },
    })
    return stdout
  }
  const runSql = (words: string) =>
    stage.dataSource.query<object[]>(STATEMENTS.find((statement) => statement.includes(words)) ?? words)
  const posts = () => stage.receiver.postsOf(deliveryId)
  const workflowId = () => `delivery/${deliveryId}`

  it('list a delivery that waits, among those of its webhook, and count it', async () => {
    await eventually(async () =>
      expect(await run(`"WebhookId = '$WEBHOOK'`)).to.match(
        new RegExp(`Running +${workflowId()} +deliverEvent`),
      ),
    )
    await eventually(async () => expect(await run('workflow count')).to.match(/^Total: [1-9]/))
  })

  it('do not list it as overdue or as failed by a fault of Posthorn', async () => {
    for (const words of ['StartTime <', "ExecutionStatus = 'Failed'"])
      expect(await run(words), words).not.to.include(deliveryId)
  })

  it('show what it waits for', async () => {
    expect(await run('workflow describe'))
      .to.match(/StaticSummary +"customer:created → http:/)
      .and.include('DeliveryState')
      .and.include('Pending Activities: 0')
    expect(await run('workflow metadata'))
      .to.include('| Now | waiting for attempt 8 of 10 |')
      .and.include('| Attempts made | 7 |')
      .and.match(/\| Next attempt \| \d{4}-\d\d-\d\dT/)
    expect(await run('--type deliveryState')).to.include('"state":"waiting"')
  })

  it("make the next attempt at once by the signal, counted as a user's retry", async () => {
    const signalledAt = Date.now()
    expect(await run('--name retry')).to.include('Signal workflow succeeded')
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 8 })
    expect(posts().map(({ arrivedAt }) => arrivedAt - signalledAt < AT_ONCE_MS)).to.deep.equal([true])
    const attempts = await stage.dataSource.query<object[]>(
      'SELECT number, trigger FROM attempt WHERE delivery_id = $1',
      [deliveryId],
    )
    expect(attempts).to.deep.equal([{ number: 8, trigger: 'retry' }])
    // The row is there before the workflow knows.
    await eventually(async () =>
      expect(await run('workflow metadata'))
        .to.include('| Now | waiting for attempt 9 of 10 |')
        .and.include('| Last outcome | HTTP 503 |'),
    )
  })

  it('end nothing by a stop signal when the row is not stopped', async () => {
    expect(await run('--name stop')).to.include('Signal workflow succeeded')
    await eventually(async () =>
      expect(await run('--type deliveryState'))
        .to.include('"attempts":8')
        .and.include('"state":"waiting"'),
    )
    expect(await run(`"WebhookId = '$WEBHOOK'`)).to.include(workflowId())
    expect(posts()).to.have.length(1)
  })

  it('is shown in the history as an activity without an attempt', async () => {
    await eventually(async () => {
      const handle = client.workflow.getHandle(workflowId())
      const { events = [] } = await handle.fetchHistory()
      const summaries = (events ?? [])
        .filter((event) => event.activityTaskScheduledEventAttributes)
        .map(({ userMetadata }) => Buffer.from(userMetadata?.summary?.data ?? []).toString())
      expect(summaries.map((summary) => JSON.parse(summary) as string)).to.deep.equal([
        'record a retry requested by signal',
        'attempt 8 of 10',
        'attempt 9 of 10',
      ])
    })
    expect(posts()).to.have.length(1)
  })

  it('list a retry job while it is in progress', async () => {
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    stage.answerWith(async () => {
      await held
      return 200
    })
    const { organisationId, apiKey } = stage.member
    const path = `/api/orgs/${organisationId}/webhooks/retry-deliveries`
    const asked = await posthorn.call('POST', path, { apiKey, body: { mode: 'force' } })
    expect(asked.status, asked.text).to.equal(202)
    const { id } = asked.json as { id: string }
    await eventually(async () =>
      expect(await run("'retryDeliveries'")).to.include(`retry-deliveries/${id}`),
    ).finally(release)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 9 })
  })

  it('report that a completed delivery has no workflow to signal', async () => {
    await eventually(async () => {
      const answer: unknown = await run('--name retry').catch((error: unknown) => error)
      expect(String(answer)).to.match(
        /failed signalling workflow: (workflow execution already completed|workflow not found)/,
      )
    })
    expect(posts()).to.have.length(2)
  })

  it('find no workflow of first attempts that an endpoint holds which hangs', async () => {
    stage.answerWith(() => null)
    const published = await Promise.all(Array.from({ length: 300 }, () => stage.publish(posthorn)))
    const held = `SELECT id FROM delivery WHERE state = 'pending' AND workflow_started_at IS NULL ORDER BY id DESC LIMIT 1`
    // One of those that are pending may just get its workflow.
    await eventually(async () => {
      const [row] = await stage.dataSource.query<{ id: string }[]>(held)
      expect(published).to.include(row?.id)
      deliveryId = row!.id
      const refused: unknown = await run('workflow describe').catch((error: unknown) => error)
      expect(String(refused)).to.match(/workflow not found/)
    })
    const age = `UPDATE delivery SET created_at = created_at - interval '20 minutes', paused_since = CASE id WHEN $1 THEN now() END
                  WHERE state <> 'completed'`
    await stage.dataSource.query(age, [deliveryId])
    // Neither the attempts in progress nor the paused delivery is overdue.
    for (const statement of ['SELECT id, webhook_id', 'SELECT webhook_id'])
      expect(JSON.stringify(await runSql(statement)), statement)
        .to.include('pending')
        .and.not.include('in_progress')
        .and.not.include(deliveryId)
  })

  it('are accompanied by statements that the database takes', async () => {
    expect(STATEMENTS).to.have.length.above(4)
    for (const statement of STATEMENTS) await stage.dataSource.query(statement.replace('…', deliveryId))
  })

  it('are all run by these tests', () => {
    expect([...notYetRun]).to.deep.equal([])
  })
})

/** The commands between the markers of the document, in their order. */
function readCommands(): string[] {
  const text = readFileSync(DOCUMENT, 'utf8')
  const [, marked = ''] = /<!-- commands:start -->(.*)<!-- commands:end -->/s.exec(text) ?? []
  const blocks = [...marked.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const lines = blocks.flatMap((block) => block.split('\n')).filter((line) => line !== '')
  expect(lines, 'one command a line').to.satisfy(() => lines.every((line) => line.startsWith('temporal ')))
  return lines
}
