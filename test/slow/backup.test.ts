import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { migrate } from '../../src/cli/migrate.ts'
import { closeDataSource, createDataSource } from '../../src/db/connection/data-source.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { startTemporalDevServer, type TemporalDevServer } from '../../src/dev/temporal-dev-server.ts'
import { deliveryWorkflowId } from '../../src/temporal/workflows.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import { findDumpPrograms } from '../helpers/database/pg-dump.ts'
import { eventually } from '../helpers/eventually.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'
import { createReceiver, type Receiver } from '../helpers/receivers/receiver.ts'
import { testServers } from '../helpers/runner/servers.ts'

const EVENTS_PER_SECOND = 25
/** One event in so many goes to the endpoints that fail too. */
const FAILING_EVERY = 10
const BEFORE_DUMP_MS = 8_000
const AFTER_DUMP_MS = 8_000
const OK_ANSWER_MS = 200
/** The waits of the schedule up to the fifth attempt are seconds; the next one is five minutes. */
const ATTEMPTS_IN_SECONDS = 5
const RECOVERED_WITHIN_MS = 90_000

type Accepted = { deliveryId: string; webhookId: string; sentAt: number; answeredAt: number }
type Row = { id: string; state: string; attempts: number; numbers: number[] }

describe('a backup taken under load, restored beside an empty Temporal', () => {
  const programs = findDumpPrograms()
  if (programs === null) {
    it.skip('PG_DUMP IS NOT INSTALLED: nothing of this was tried (apt-get install postgresql-client)')
    return
  }
  let folder: string
  let postgres: EmbeddedPostgres
  let temporal: TemporalDevServer
  let stage: Stage
  let restored: DataSource
  let recovering: Receiver
  let failing: Receiver

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'posthorn-backup-'))
    // PostgreSQL does not run as root: its user has to get in.
    chmodSync(folder, 0o755)
    const installed = await programs.provideServer()
    postgres = await startEmbeddedPostgres({
      ...(installed === null ? {} : { installed }),
      dataDir: join(folder, 'postgres'),
      logFile: join(folder, 'postgres.log'),
      print: () => undefined,
    })
    for (const name of ['original', 'restored']) await postgres.createDatabase(name)
    const url = postgres.databaseUrl('original')
    await migrate(url)
    const dataSource = createDataSource({ url, poolSize: 5 })
    await dataSource.initialize()
    stage = await createStage({ database: { url, dataSource, drop: () => closeDataSource(dataSource) } })
    restored = createDataSource({ url: postgres.databaseUrl('restored'), poolSize: 5 })
    await restored.initialize()
    temporal = await startTemporalDevServer({
      executable: testServers().temporalCli,
      dbFile: join(folder, 'temporal.db'),
      logFile: join(folder, 'temporal.log'),
      headless: true,
      searchAttributes: false,
      print: () => undefined,
    })
  })
  after(async () => {
    await stage.close()
    await Promise.all([recovering.close(), failing.close()])
    await closeDataSource(restored)
    await temporal.stop()
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  })

  /** Publishes until `signal` is aborted; returns every delivery that was accepted. */
  async function publishSteadily(posthorn: PosthornProcess, signal: AbortSignal): Promise<Accepted[]> {
    const { organisationId, apiKey } = stage.member
    const path = `/api/orgs/${organisationId}/events`
    const accepted: Accepted[] = []
    const publish = async (count: number): Promise<void> => {
      const event = count % FAILING_EVERY === 0 ? 'comment:created' : 'customer:created'
      const sentAt = Date.now()
      const answer = await posthorn.call('POST', path, {
        apiKey,
        body: { event, data: { id: `n_${count}` } },
      })
      expect(answer.status, answer.text).to.equal(202)
      const { deliveries } = answer.json as { deliveries: { id: string; webhookId: string }[] }
      const answeredAt = Date.now()
      for (const { id, webhookId } of deliveries)
        accepted.push({ deliveryId: id, webhookId, sentAt, answeredAt })
    }
    const under = []
    for (let count = 0; !signal.aborted; count++) {
      under.push(publish(count))
      await delay(1_000 / EVENTS_PER_SECOND)
    }
    await Promise.all(under)
    return accepted
  }

  async function rowsOf(dataSource: DataSource, ids: string[]): Promise<Map<string, Row>> {
    const rows = await dataSource.query<Row[]>(
      `SELECT d.id, d.state, d.attempts,
              array(SELECT number FROM attempt a WHERE a.delivery_id = d.id ORDER BY number) AS numbers
         FROM delivery d WHERE d.id = ANY($1)`,
      [ids],
    )
    return new Map(rows.map((row) => [row.id, row]))
  }

  it('loses nothing accepted before the dump, and repeats what was delivered after it with the same id and bytes', async () => {
    let isRecovered = false
    stage.answerWith(async () => {
      await delay(OK_ANSWER_MS)
      return 200
    })
    recovering = await createReceiver({ answer: () => (isRecovered ? 200 : 500) })
    failing = await createReceiver({ answer: () => 500 })
    const { organisationId } = stage.member
    const onlyComments = { organisationId, subscribedEventKeys: ['comment:created'] }
    const recoveringHook = await createWebhookRow(stage.dataSource, { ...onlyComments, url: recovering.url })
    const failingHook = await createWebhookRow(stage.dataSource, { ...onlyComments, url: failing.url })

    const original = await stage.start()
    const load = new AbortController()
    const publishing = publishSteadily(original, load.signal)
    publishing.catch(() => undefined)
    await delay(BEFORE_DUMP_MS)
    const dumpFile = join(folder, 'posthorn.dump')
    const dumpBeganAt = Date.now()
    await programs.dump(stage.databaseUrl, dumpFile)
    const dumpedAt = Date.now()
    isRecovered = true
    await delay(AFTER_DUMP_MS)
    load.abort()
    const accepted = await publishing
    await original.kill()
    const receivers = [stage.receiver, recovering, failing]
    const postsBefore = receivers.map(({ posts }) => posts.length)

    await programs.restore(postgres.databaseUrl('restored'), dumpFile)
    expect(await migrate(postgres.databaseUrl('restored'))).to.deep.equal([])
    const before = accepted.filter(({ answeredAt }) => answeredAt < dumpBeganAt)
    const after = accepted.filter(({ sentAt }) => sentAt > dumpedAt)
    const idsTo = (deliveries: Accepted[], webhookId: string): string[] =>
      deliveries.filter((each) => each.webhookId === webhookId).map(({ deliveryId }) => deliveryId)
    const atRestore = await rowsOf(
      restored,
      before.map(({ deliveryId }) => deliveryId),
    )
    expect(before.length).to.be.above((EVENTS_PER_SECOND * BEFORE_DUMP_MS) / 1_000 / 3)
    expect(before.filter(({ deliveryId }) => !atRestore.has(deliveryId))).to.deep.equal([])
    // What was accepted after the dump is lost with the original database.
    expect(after.length).to.be.above(0)
    const lost = await rowsOf(
      restored,
      after.map(({ deliveryId }) => deliveryId),
    )
    expect([...lost.keys()]).to.deep.equal([])

    await stage.start({
      databaseUrl: postgres.databaseUrl('restored'),
      temporalAddress: temporal.address,
    })
    const completing = [...idsTo(before, stage.webhookId), ...idsTo(before, recoveringHook.id)]
    const continuing = idsTo(before, failingHook.id)
    expect(continuing.length).to.be.above(5)
    await eventually(async () => {
      const rows = [...(await rowsOf(restored, completing)).values()]
      expect(rows.filter(({ state }) => state !== 'completed')).to.deep.equal([])
      const waiting = [...(await rowsOf(restored, continuing)).values()]
      const isOnSchedule = ({ state, attempts }: Row): boolean =>
        state === 'waiting' && attempts === ATTEMPTS_IN_SECONDS
      expect(waiting.filter((row) => !isOnSchedule(row))).to.deep.equal([])
    }, RECOVERED_WITHIN_MS)

    const rows = await rowsOf(restored, [...completing, ...continuing])
    expect(rows.size).to.equal(before.length)
    for (const { numbers, attempts } of rows.values())
      expect(numbers).to.deep.equal(Array.from({ length: attempts }, (_, index) => index + 1))
    const temporalClient = await Connection.connect({ address: temporal.address })
    const { workflow } = new Client({ connection: temporalClient })
    for (const id of continuing)
      expect((await workflow.getHandle(deliveryWorkflowId(id)).describe()).status.name).to.equal('RUNNING')
    await temporalClient.close()

    // The restored database has no trace of what was sent after the dump: it is sent again, as the same delivery.
    let repeated = 0
    for (const [index, receiver] of receivers.entries()) {
      const { posts } = receiver
      const sentBefore = new Set(posts.slice(0, postsBefore[index]).map(idOf))
      for (const id of new Set(posts.slice(postsBefore[index]).map(idOf))) {
        const sent = receiver
          .postsOf(id)
          .map(({ body, headers }) => `${body.toString()} ${String(headers['x-webhook-signature'])}`)
        expect(new Set(sent).size, id).to.equal(1)
        if (sentBefore.has(id) && atRestore.has(id)) repeated++
      }
    }
    expect(repeated).to.be.above(0)
    for (const id of completing) {
      const posts = [...stage.receiver.postsOf(id), ...recovering.postsOf(id)]
      expect(posts.length, id).to.be.above(0)
    }
    const isDeliveredTwice = (id: string): boolean =>
      recovering.postsOf(id).filter(({ answeredAt }) => answeredAt > dumpedAt).length > 1
    expect(idsTo(before, recoveringHook.id).filter(isDeliveredTwice)).not.to.deep.equal([])
  })
})

function idOf({ headers }: Receiver['posts'][number]): string {
  return String(headers['x-webhook-event-id'])
}
