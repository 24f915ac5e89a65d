import { expect } from 'chai'
import { openIncident } from '../../../src/db/queries/incidents.ts'
import { newId } from '../../../src/ids.ts'
import { useInlineAttempts } from '../../helpers/deliveries/use-inline-attempts.ts'
import { eventually } from '../../helpers/eventually.ts'

/** More than one pass takes. */
const FAILING = 12
const OTHERS = 3

describe('incidents whose workflow is to be signalled', () => {
  const suite = useInlineAttempts()

  it('have their turn although the signals of the oldest ones fail, which are repeated', async () => {
    const { dataSource } = suite.database
    const ids: string[] = []
    for (let index = 0; index < FAILING + OTHERS; index++) {
      const { organisationId, webhookId } = await suite.endpoint()
      const id = newId()
      await openIncident(dataSource, { id, organisationId, webhookId })
      await dataSource.query(
        `UPDATE incident SET sweep_at = now() - interval '1 hour' + $2 * interval '1 ms' WHERE id = $1`,
        [id, index],
      )
      ids.push(id)
    }
    const failing = new Set(ids.slice(0, FAILING))
    const signalled: string[] = []
    const incidentWorkflows = {
      signal: ({ incidentId }: { incidentId: string }) =>
        failing.has(incidentId)
          ? Promise.reject(new Error('Temporal refuses this one'))
          : Promise.resolve(void signalled.push(...ids.filter((id) => id === incidentId))),
    }
    const { sweep } = suite.process({ attempts: { incidentWorkflows } })
    for (let pass = 0; pass < 2; pass++) await sweep.runOnce()
    expect(signalled).to.have.members(ids.slice(FAILING))

    failing.clear()
    await eventually(async () => {
      await sweep.runOnce()
      expect(signalled).to.have.members(ids)
    })
  })
})
