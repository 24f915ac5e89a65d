import { expect } from 'chai'
import { testServers } from '../helpers/runner/servers.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { createTcpProxy } from './rig/tcp-proxy.ts'

/** For a machine under other load. */
const TOLERANCE_MS = 10_000

/** Of starts by a workflow only, so that nothing is delivered without Temporal. */
const env = { FIRST_ATTEMPT: 'workflow' }

describe('a connection to Temporal that falls silent', () => {
  const stage = useStage()

  it('is replaced within half a minute, and what was published meanwhile is delivered', async () => {
    const { hostname, port } = new URL(`tcp://${testServers().temporalAddress}`)
    const proxy = await createTcpProxy({ host: hostname, port: Number(port) })
    const posthorn = await stage.start({ env, temporalAddress: `127.0.0.1:${proxy.port}` })
    const engine = async (): Promise<unknown> =>
      ((await posthorn.call('GET', '/readyz')).json as { engine: string }).engine
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
    await proxy.close()
  })
})
