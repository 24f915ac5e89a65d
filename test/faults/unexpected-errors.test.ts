import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { eventually } from '../helpers/eventually.ts'
import { useStage } from '../helpers/processes/stage.ts'

const PRELOAD = fileURLToPath(new URL('./rig/throw-on-signal.mjs', import.meta.url))

describe('an uncaught error', () => {
  const stage = useStage()
  const env = { FIRST_ATTEMPT: 'direct', METRICS_PORT: '0', NODE_OPTIONS: `--import ${PRELOAD}` }

  it('is logged and counted, and a rejection does not stop the process', async () => {
    const posthorn = await stage.start({ env })
    process.kill(posthorn.pid, 'SIGHUP')
    await eventually(() => expect(posthorn.log()).to.include('"event":"process.unhandled_rejection"'))
    const counted = await (await posthorn.scrape()).text()
    expect(counted).to.include('posthorn_unexpected_errors_total{kind="rejection"} 1')
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(await posthorn.stop()).to.equal(0)
  })

  it('stops the process cleanly with exit code 1 where it is an exception', async () => {
    stage.answerWith((_index, _post, response) => {
      setTimeout(() => response.writeHead(200).end(), 1_000)
      return null
    })
    const posthorn = await stage.start({ env })
    const deliveryId = await stage.publish(posthorn)
    await eventually(() => expect(stage.receiver.posts).to.have.length(1))
    process.kill(posthorn.pid, 'SIGUSR2')
    await eventually(() => expect(posthorn.log()).to.include('"event":"process.uncaught_exception"'))
    // The first signal does not cut off a stop that is under way.
    process.kill(posthorn.pid, 'SIGTERM')
    // The POST in progress is recorded before the end.
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    await eventually(() => expect(isRunning(posthorn.pid)).to.equal(false))
    expect(await posthorn.stop()).to.equal(1)
  })
})

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
