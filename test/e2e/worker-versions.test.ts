import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { useTemporalClient } from '../helpers/runner/servers.ts'

describe('workers with versions', () => {
  const stage = useStage()
  const temporal = useTemporalClient()

  /** The build that made the latest step of a delivery's workflow. */
  async function buildOf(deliveryId: string): Promise<string | null | undefined> {
    const { raw } = await temporal.workflow.getHandle(`delivery/${deliveryId}`).describe()
    return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId
  }

  it('leave deliveries to the current version, and move those in progress when another becomes current', async () => {
    const deploymentName = `posthorn-${randomUUID()}`
    const startWorker = (buildId: string) =>
      stage.start({
        env: {
          FIRST_ATTEMPT: 'workflow',
          TEMPORAL_DEPLOYMENT_NAME: deploymentName,
          TEMPORAL_WORKER_BUILD_ID: buildId,
        },
      })
    const makeCurrent = (buildId: string) =>
      eventually(() =>
        temporal.workflowService.setWorkerDeploymentCurrentVersion({
          namespace: 'default',
          deploymentName,
          buildId,
          identity: 'test',
        }),
      )
    stage.answerWith(() => 500)
    const posthorn = await startWorker('first')
    await makeCurrent('first')
    await startWorker('second')
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 4 })
    expect(await buildOf(deliveryId)).to.equal('first')
    await makeCurrent('second')
    stage.answerWith(() => 200)
    const posts = stage.receiver.postsOf(deliveryId).length
    await eventually(async () => {
      const rows = await stage.dataSource.query<object[]>('SELECT state FROM delivery WHERE id = $1', [
        deliveryId,
      ])
      expect(rows).to.deep.equal([{ state: 'completed' }])
      expect(await buildOf(deliveryId)).to.equal('second')
    })
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(posts + 1)
  })
})
