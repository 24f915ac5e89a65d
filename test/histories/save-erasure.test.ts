import { createErasureWorkflows, erasureWorkflowId } from '../../src/temporal/erasure-workflows.ts'
import { insertErasure } from '../../src/db/queries/erasures.ts'
import { attemptDependencies } from '../helpers/deliveries/attempts.ts'
import { useHistoryStage } from '../helpers/temporal/use-history-stage.ts'

/** A part of `npm run histories`: an organisation that is erased in several steps. */
describe('the history of an erasure', () => {
  const stage = useHistoryStage()

  it('is saved', async () => {
    const { temporal, dataSource } = stage
    const { organisationId } = await stage.publish()
    await insertErasure(dataSource, organisationId)
    await temporal.withWorkflows(
      { ...attemptDependencies(dataSource), minErasureAgeMs: 0 },
      async (_workflows, taskQueue) => {
        const { client } = temporal.environment
        await createErasureWorkflows({ client: () => client, taskQueue }).start({ organisationId })
        await client.workflow.getHandle(erasureWorkflowId(organisationId)).result()
      },
    )
    await stage.save('erasure', erasureWorkflowId(organisationId))
  })
})
