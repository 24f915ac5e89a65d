import type { DataSource } from 'typeorm'
import { countReplayable, insertReplay } from '../../../src/db/queries/replays.ts'
import { newId } from '../../../src/ids.ts'

/** A replay of every event of the organisation, straight in the database; returns its id. */
export async function createReplayRow(
  dataSource: DataSource,
  of: { organisationId: string; webhookId: string; requestedBy: string },
): Promise<string> {
  const { requestedBy, ...webhook } = of
  const range = { since: new Date(0), until: new Date(), eventKeys: null, include: 'all' } as const
  const work = { ...webhook, range, keptDays: 30 }
  const id = newId()
  const count = await countReplayable(dataSource, work)
  await insertReplay(dataSource, { ...work, id, count, requestedBy })
  return id
}
