import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import {
  CALLER_TTL_MS,
  createCallerLookup,
  createKnownCredentials,
} from '../../../../src/accounts/caller-lookup.ts'
import { closeDataSource, createDataSource } from '../../../../src/db/connection/data-source.ts'
import { createTestApi, type ApiResponse, type TestApi } from '../../../helpers/api/api.ts'
import { createMember, createWebhookRow, type TestMember } from '../../../helpers/database/factories.ts'
import { percentile } from '../../../helpers/percentile.ts'
import { useDatabase } from '../../../helpers/database/database.ts'

const WEBHOOKS = 1_000

/** Events at once of the organisation with many webhooks, and of the other one: so few cost little themselves. */
const HEAVY = 50
const LIGHT = 10
const url = 'https://receiver.example.com/'

describe('events of an organisation with a thousand webhooks', () => {
  const database = useDatabase()
  let dataSource: DataSource
  let api: TestApi
  let heavy: TestMember
  let light: TestMember

  before(async () => {
    dataSource = await createDataSource({ url: database.url, poolSize: 20 }).initialize()
    const known = createKnownCredentials()
    const findCaller = createCallerLookup(dataSource, CALLER_TTL_MS, known)
    api = await createTestApi(dataSource, { findCaller, known })
    heavy = await createMember(dataSource)
    light = await createMember(dataSource)
    for (const { organisationId } of [heavy, light])
      await createWebhookRow(dataSource, { organisationId, url })
    await dataSource.query(
      `INSERT INTO webhook (id, organisation_id, url, description, subscribed_event_keys, enabled, secret)
       SELECT uuidv7(), organisation_id, url, description, subscribed_event_keys, enabled, secret
         FROM webhook CROSS JOIN generate_series(2, $2) WHERE organisation_id = $1`,
      [heavy.organisationId, WEBHOOKS],
    )
    // Connections are open, fewer than one address may have, and plans made, as in a process that serves.
    await Promise.all(Array.from({ length: 90 }, () => publish(light)))
  })
  after(async () => {
    await api.close()
    await closeDataSource(dataSource)
  })

  async function publish(
    { organisationId, apiKey }: TestMember,
    idempotencyKey?: string,
  ): Promise<ApiResponse> {
    return api.call('POST', `/api/orgs/${organisationId}/events`, {
      apiKey,
      body: { event: 'customer:created', data: { id: 'cus_1' } },
      ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
    })
  }

  /** Asks for the readiness until `work` is done. */
  async function readinessDuring(work: Promise<unknown>): Promise<Set<number>> {
    const seen = new Set<number>()
    const state = { isDone: false }
    const done = work.finally(() => (state.isDone = true))
    while (!state.isDone) {
      seen.add((await api.call('GET', '/readyz')).status)
      await delay(50)
    }
    await done
    return seen
  }

  for (const [title, keyOf] of [
    ['', () => undefined],
    [', with an Idempotency-Key each', (name: string) => `${name}-${randomUUID()}`],
  ] as const) {
    it(`delay no event of another organisation, and leave the process ready${title}`, async () => {
      let answeredHeavy = 0
      /** How many of the heavy events had their answer when each light one was answered. */
      const answeredBefore: number[] = []
      const publishHeavy = async (name: string): Promise<ApiResponse> => {
        const answer = await publish(heavy, keyOf(name))
        answeredHeavy++
        return answer
      }
      const publishLight = async (name: string): Promise<ApiResponse> => {
        const answer = await publish(light, keyOf(name))
        answeredBefore.push(answeredHeavy)
        return answer
      }
      const answers = Promise.all([
        Promise.all(Array.from({ length: HEAVY }, (_, n) => publishHeavy(`heavy-${n}`))),
        Promise.all(Array.from({ length: LIGHT }, (_, n) => publishLight(`light-${n}`))),
      ])
      const readiness = await readinessDuring(answers)
      const [ofHeavy, ofLight] = await answers
      for (const { status, text } of ofLight) expect(status, text).to.equal(202)
      expect(percentile(answeredBefore, 0.5)).to.be.below(HEAVY / 4)
      expect(ofHeavy.filter(({ status }) => status === 202)).to.have.length.above(1)
      for (const { status, text, json, headers } of ofHeavy) {
        expect(status, text).to.be.oneOf([202, 503])
        if (status === 202) continue
        expect(json).to.include({ code: 'overloaded' })
        expect(headers.get('retry-after')).to.match(/^[1-9]\d*$/)
      }
      expect([...readiness]).to.deep.equal([200])
    })
  }
})
