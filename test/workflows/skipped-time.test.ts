import { expect } from 'chai'
import { skipDeliveryTime } from '../helpers/database/skip-delivery-time.ts'
import { useDatabase } from '../helpers/database/database.ts'
import { useTemporal } from '../helpers/temporal/time-skipping.ts'

describe('the clock of deliveries in a test database', () => {
  const database = useDatabase()
  const temporal = useTemporal()
  const nowMs = async () => {
    const [row] = await database.dataSource.query<{ now: Date }[]>('SELECT delivery_now() AS now')
    return row!.now.getTime()
  }

  it('follows a Temporal server that skips time, and is never behind it', async () => {
    for (const skipped of ['1 second', '6 minutes', '2 days'] as const) {
      await temporal.environment.sleep(skipped)
      const { follow } = await skipDeliveryTime(database.dataSource, temporal.environment)
      const startedAtMs = performance.now()
      const beforeMs = await temporal.environment.currentTimeMs()
      await follow()
      const aheadMs = (await nowMs()) - beforeMs
      // No further than the time that passed meanwhile, but for rounding.
      expect(aheadMs, skipped).to.be.within(0, performance.now() - startedAtMs + 5)
    }
    expect(await nowMs()).to.be.above(Date.now() + 2 * 86_400_000)
  })
})
