import { randomUUID } from 'node:crypto'
import { Client, Connection } from '@temporalio/client'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/use-stage.ts'
import { testServers } from '../helpers/runner/servers.ts'

describe('workers with versions', function () {
  this.timeout(90_000)
  const stage = useStage()
  let temporal: Client

  before(async () => {
    temporal = new Client({
      connection: await Connection.connect({ address: testServers().temporalAddress }),
    })
  })
  after(() => temporal.connection.close())

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
      eventually(
        () =>
          temporal.workflowService.setWorkerDeploymentCurrentVersion({
            namespace: 'default',
            deploymentName,
            buildId,
            identity: 'test',
          }),
        20_000,
      )
    stage.answerWith(() => 500)
    const posthorn = await startWorker('first')
    await makeCurrent('first')
    const deliveryId = await stage.publish(posthorn)
    await eventually(async () => {
      expect(await buildOf(deliveryId)).to.equal('first')
    }, 20_000)
    await startWorker('second')
    await stage.reaches(deliveryId, { state: 'waiting', attempts: 3 }, 20_000)
    expect(await buildOf(deliveryId)).to.equal('first')
    await makeCurrent('second')
    stage.answerWith(() => 200)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 4 }, 20_000)
    await eventually(async () => {
      expect(await buildOf(deliveryId)).to.equal('second')
    })
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(4)
  })
})
