import type { DataSource } from 'typeorm'

/** Makes deliveries that wait due now, as if the time until their next attempts were over; leaves others alone. */
export async function makeDue(dataSource: DataSource, ids: readonly string[]): Promise<void> {
  await dataSource.query(
    `UPDATE delivery SET next_attempt_at = delivery_now() WHERE id = ANY($1::uuid[]) AND state = 'waiting'`,
    [ids],
  )
}
