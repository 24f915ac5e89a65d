import { expect } from 'chai'
import { skipDeliveryTime } from '../helpers/database/skip-delivery-time.ts'
import { useDatabase } from '../helpers/database/use-database.ts'
import { useTemporal } from '../helpers/temporal/use-temporal.ts'

/** A round trip to Temporal and one to PostgreSQL, on a machine with other load. */
const EXACT_MS = 250

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
      const beforeMs = await temporal.environment.currentTimeMs()
      await follow()
      expect((await nowMs()) - beforeMs, skipped).to.be.within(0, EXACT_MS)
    }
    expect(await nowMs()).to.be.above(Date.now() + 2 * 86_400_000)
  })
})
