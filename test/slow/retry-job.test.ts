import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { postsByDelivery, runRetryJob } from '../helpers/processes/burst.ts'
import { useStage } from '../helpers/processes/stage.ts'

/** Resident memory of a process in MB, once a second until stopped (Linux; elsewhere nothing is seen). */
function watchMemory(pid: number): { stop(): number[] } {
  const seen: number[] = []
  const timer = setInterval(() => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    seen.push(Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024))
  }, 1_000)
  return {
    stop() {
      clearInterval(timer)
      return seen
    },
  }
}

/** Enough for a cost that grows with them. On two cores with the development server each takes some 50 ms. */
const DELIVERIES = 1_000

describe('a large retry job', function () {
  this.timeout(15 * 60_000)
  const stage = useStage()

  it(`attempts ${DELIVERIES} deliveries once each, the last ones at the cost of the first ones`, async function () {
    const { organisationId } = stage.member
    const at = { organisationId, webhookId: stage.webhookId, count: DELIVERIES / 2 }
    const ids = [
      ...(await writeBacklog(stage.dataSource, { ...at, state: 'failed' })),
      ...(await writeBacklog(stage.dataSource, { ...at, state: 'waiting' })),
    ]
    const posthorn = await stage.start()
    const memory = watchMemory(posthorn.pid)
    const { total, progress, tookMs, firstPostAfterMs } = await runRetryJob(
      stage,
      posthorn,
      { mode: 'force' },
      12 * 60_000,
    )
    const memoryMb = memory.stop()
    expect(total).to.equal(DELIVERIES)
    const posts = postsByDelivery(stage)
    expect(posts.size).to.equal(ids.length)
    expect([...posts.values()].every((count) => count === 1)).to.equal(true)
    expect(await stage.uncompleted()).to.equal(0)
    expect(progress).to.deep.equal([...progress].sort((a, b) => a - b))
    expect(firstPostAfterMs).to.be.below(tookMs / 2)
    // Flat: the second half needs no more than the first, but for what a heap without pressure has not collected yet.
    const half = memoryMb.length / 2
    const [early, late] = [Math.max(...memoryMb.slice(0, half)), Math.max(...memoryMb.slice(half))]
    const arrivals = stage.receiver.posts.map(({ arrivedAt }) => arrivedAt).sort((a, b) => a - b)
    const [first, middle, last] = [arrivals[0]!, arrivals[DELIVERIES / 2]!, arrivals.at(-1)!]
    this.test!.title += ` (${middle - first} and ${last - middle} ms, at most ${early} and ${late} MB)`
    expect(late).to.be.below(early * 1.5)
    expect(last - middle).to.be.below((middle - first) * 5)
  })
})
