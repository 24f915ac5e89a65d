import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { createWebhookRow } from '../helpers/database/factories.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { failWrites } from './rig/sql-faults.ts'

/** Disk full, out of memory, cancelled, lock not available, I/O error, wrong role, a constraint: none means "unavailable". */
const SQLSTATES = ['53100', '53200', '57014', '55P03', '58030', '28000', '23514']

/** Longer than the lease of a claim, of a commit, and the patience of the sweep with a first attempt. */
const FAULT_MS = 22_000

const ATTEMPT_TIMEOUT_MS = '1000'

describe('outcomes that the database refuses for longer than a lease', () => {
  const stage = useStage()

  /** A webhook for each SQLSTATE, whose attempts cannot be written for that reason; returns what ends the faults. */
  async function breakRecording(): Promise<() => Promise<void>> {
    const { organisationId } = stage.member
    const mends: (() => Promise<void>)[] = []
    for (const sqlstate of SQLSTATES) {
      const { url } = stage.receiver
      const webhook = await createWebhookRow(stage.dataSource, { organisationId, url: `${url}/${sqlstate}` })
      const when = `NEW.webhook_id = '${webhook.id}'`
      mends.push(await failWrites(stage.dataSource, { table: 'attempt', sqlstate, when }))
    }
    return async () => {
      for (const mend of mends) await mend()
    }
  }
  /** One event for all of these webhooks; returns the ids of their deliveries. */
  async function publish(posthorn: PosthornProcess): Promise<string[]> {
    const { organisationId, apiKey } = stage.member
    const body = { event: 'customer:created', data: { id: 'cus_1' } }
    const { status, json } = await posthorn.call('POST', `/api/orgs/${organisationId}/events`, {
      apiKey,
      body,
    })
    expect(status).to.equal(202)
    const { deliveries } = json as { deliveries: { id: string; webhookId: string }[] }
    return deliveries.filter(({ webhookId }) => webhookId !== stage.webhookId).map(({ id }) => id)
  }

  // Both take the same way in every mode.
  for (const [kind, status, mode] of [
    ['confirmations', 200, 'workflow'],
    ['failures', 503, 'direct'],
  ] as const)
    it(`keep ${kind} in \`${mode}\` until they can be recorded, and repeat no POST`, async () => {
      const posthorn = await stage.start({
        env: { ATTEMPT_TIMEOUT_MS, FIRST_ATTEMPT: mode, METRICS_PORT: '0' },
      })
      const mend = await breakRecording()
      stage.answerWith(() => status)
      const deliveries = await publish(posthorn)
      expect(deliveries).to.have.length(SQLSTATES.length)
      await eventually(() => expect(new Set(stage.receiver.posts.map(({ path }) => path)).size).to.equal(8))
      await delay(FAULT_MS)
      const broken = (): number[] =>
        SQLSTATES.map((code) => stage.receiver.posts.filter(({ path }) => path.endsWith(`/${code}`)).length)
      expect(broken()).to.deep.equal(SQLSTATES.map(() => 1))
      expect(posthorn.log()).to.include('attempt.record_failed')
      expect(await (await posthorn.scrape()).text()).to.match(/posthorn_attempt_recording_errors_total [1-9]/)

      stage.answerWith(() => 200)
      await mend()
      const attempts = status === 200 ? 1 : 2
      for (const deliveryId of deliveries)
        await eventually(async () => {
          const [row] = await stage.dataSource.query<object[]>(
            `SELECT state, (SELECT count(*)::int FROM attempt a WHERE a.delivery_id = d.id) >= $2 AS "isWhole"
               FROM delivery d WHERE id = $1`,
            [deliveryId, attempts],
          )
          expect(row).to.deep.equal({ state: 'completed', isWhole: true })
        })
      expect(broken()).to.deep.equal(SQLSTATES.map(() => attempts))
      expect(await posthorn.stop()).to.equal(0)
    })
})
