import { createJobWorkflows, erasureWorkflowId } from '../../src/temporal/workflows.ts'
import { insertErasure } from '../../src/db/queries/erasures.ts'
import { attemptDependencies, type TestDependencies } from '../helpers/deliveries/attempts.ts'
import { useHistoryStage } from '../helpers/temporal/use-history-stage.ts'

/** Steps before the last: after the first, each finds nothing to erase, and the delays are doubled up to the longest. */
const STEPS_BEFORE_LAST = 7
const AN_HOUR_MS = 3_600_000

/** A part of `npm run histories`: an organisation that is erased in several steps. */
describe('the history of an erasure', () => {
  const stage = useHistoryStage()

  it('is saved', async () => {
    const { temporal, dataSource } = stage
    const { organisationId } = await stage.publish()
    await insertErasure(dataSource, organisationId)
    // Read once before the first step, where the activities are made.
    let steps = -1
    const dependencies: TestDependencies = {
      ...attemptDependencies(dataSource),
      get minErasureAgeMs() {
        return steps++ < STEPS_BEFORE_LAST ? AN_HOUR_MS : 0
      },
    }
    await temporal.withWorkflows(dependencies, async (_workflows, taskQueue) => {
      const { client } = temporal.environment
      await createJobWorkflows({ client: () => client, taskQueue }).erasureWorkflows.start({
        organisationId,
      })
      await client.workflow.getHandle(erasureWorkflowId(organisationId)).result()
    })
    await stage.save('erasure', erasureWorkflowId(organisationId))
  })
})
