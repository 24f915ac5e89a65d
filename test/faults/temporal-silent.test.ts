import { expect } from 'chai'
import { deliveryWorkflowId } from '../../src/temporal/workflows.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import { testServers, useTemporalClient } from '../helpers/runner/servers.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createTcpProxy, type TcpProxy } from './rig/tcp-proxy.ts'

/** For a machine under other load. */
const TOLERANCE_MS = 10_000

/** Of starts by a workflow only, so that nothing is delivered without Temporal. */
const env = { FIRST_ATTEMPT: 'workflow' }

describe('a connection to Temporal that falls silent', () => {
  const stage = useStage()
  const client = useTemporalClient()
  let proxy: TcpProxy
  let posthorn: PosthornProcess

  beforeEach(async () => {
    const { hostname, port } = new URL(`tcp://${testServers().temporalAddress}`)
    proxy = await createTcpProxy({ host: hostname, port: Number(port) })
    posthorn = await stage.start({ env, temporalAddress: `127.0.0.1:${proxy.port}` })
  })
  afterEach(() => proxy.close())

  const engine = async (): Promise<unknown> =>
    ((await posthorn.call('GET', '/readyz')).json as { engine: string }).engine

  it('is replaced within half a minute, and what was published meanwhile is delivered', async () => {
    const before = await stage.publish(posthorn)
    await stage.reaches(before, { state: 'completed', attempts: 1 })
    proxy.fallSilent('open')
    const silentAt = Date.now()
    expect(await engine()).to.equal('down')
    const meanwhile = await stage.publish(posthorn)
    await stage.reaches(meanwhile, { state: 'completed', attempts: 1 }, 30_000 + TOLERANCE_MS)
    expect(Date.now() - silentAt).to.be.below(30_000 + TOLERANCE_MS)
    expect(await engine()).to.equal('up')
    expect(await posthorn.stop()).to.equal(0)
  })

  it('leaves overdue deliveries to another worker, which recovers them within a minute', async () => {
    const other = await stage.start({ command: 'worker', env })
    stage.answerWith(() => 500)
    const deliveries = await Promise.all(Array.from({ length: 5 }, () => stage.publish(posthorn)))
    for (const id of deliveries) await stage.reaches(id, { state: 'waiting', attempts: 4 })
    proxy.fallSilent('all')
    stage.answerWith(() => 200)
    for (const id of deliveries) await client.workflow.getHandle(deliveryWorkflowId(id)).terminate()
    const [due] = await stage.dataSource.query<{ at: Date }[]>(
      'SELECT max(next_attempt_at) AS at FROM delivery',
    )
    for (const id of deliveries) await stage.reaches(id, { state: 'completed', attempts: 5 }, 70_000)
    expect(Date.now() - due!.at.getTime()).to.be.below(60_000 + TOLERANCE_MS)
    expect(other.log()).to.include('sweep.restarted_workflow')
    expect(posthorn.log()).not.to.include('sweep.restarted_workflow')
  })
})
