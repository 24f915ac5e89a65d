import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common'
import { expect } from 'chai'
import { useAttempts } from '../helpers/deliveries/use-attempts.ts'
import type { History } from '../helpers/temporal/history.ts'
import { useTemporal } from '../helpers/temporal/time-skipping.ts'

const deliveryState = defineSearchAttributeKey('DeliveryState', SearchAttributeType.KEYWORD)

describe('the search attribute DeliveryState', () => {
  const suite = useAttempts()
  const { database, answerWith } = suite
  const temporal = useTemporal()

  /** Delivers one event from the given attempt on; returns what the run says in the end and what it upserted. */
  async function deliverFrom(number: number): Promise<{ value: string | undefined; upserts: number }> {
    const { delivery } = await suite.publish()
    const { deliveryId } = delivery
    await database.dataSource.query(
      `UPDATE delivery SET attempts = $2, state = 'waiting', next_attempt_at = now() WHERE id = $1 AND $2 > 0`,
      [deliveryId, number - 1],
    )
    return temporal.withWorkflows(suite.dependencies, async (workflows) => {
      const dueAtMs = number === 1 ? null : (await temporal.environment.currentTimeMs()) + 60_000
      await workflows.start(delivery, { number, dueAtMs })
      const handle = temporal.handleOf(deliveryId)
      await handle.result()
      const history: History = await handle.fetchHistory()
      const upserted = (history.events ?? []).filter(
        (event) => event.upsertWorkflowSearchAttributesEventAttributes,
      )
      const described = await handle.describe()
      return { value: described.typedSearchAttributes.get(deliveryState), upserts: upserted.length }
    })
  }

  it('is never set for a delivery that succeeds at once', async () => {
    answerWith(() => 200)
    expect(await deliverFrom(1)).to.deep.equal({ value: undefined, upserts: 0 })
  })

  it('is set at the first wait and at the end of a delivery that waits, however often it waits', async () => {
    answerWith((index) => (index < 3 ? 500 : 200))
    expect(await deliverFrom(1)).to.deep.equal({ value: 'completed', upserts: 2 })
  })

  it('is set at the first wait of a run that begins with a retry, and at its end', async () => {
    answerWith(() => 500)
    expect(await deliverFrom(9)).to.deep.equal({ value: 'failed', upserts: 2 })
  })
})
