import { expect } from 'chai'
import { instantOfId } from '../../../src/ids.ts'
import { useDatabase } from '../../helpers/database/database.ts'

const VERSION_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

describe('ids that PostgreSQL makes', () => {
  const database = useDatabase()

  it('are of version 7, different, and grow with time', async () => {
    const made = await database.dataSource.query<{ id: string; us: string }[]>(
      `SELECT uuidv7() AS id, floor(extract(epoch FROM clock_timestamp()) * 1000000)::text AS us
         FROM generate_series(1, 2000)`,
    )
    const ids = made.map(({ id }) => id)
    for (const id of ids) expect(id).to.match(VERSION_7)
    expect(new Set(ids)).to.have.lengthOf(ids.length)
    for (const { id, us } of made)
      expect(instantOfId(id)).to.be.within(Number(us) / 1000 - 1_000, Number(us) / 1000)
    // A row's instant is read after its id was made, so an id is larger than those of rows with an earlier instant than
    // that of the row before it.
    for (const [index, { id, us }] of made.entries()) {
      const before = made.findIndex((row, place) => place > index && Number(row.us) > Number(us))
      const later = made[before + 1]
      if (before !== -1 && later !== undefined) expect(later.id > id, `${id} ${later.id}`).to.equal(true)
    }
  })
})
