import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { writeBacklog } from '../helpers/deliveries/backlog.ts'
import { runRetryJob } from '../helpers/processes/retry-job.ts'
import { createStage } from '../helpers/processes/stage.ts'

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

/**
 * Retry jobs over thousands of deliveries. On two cores with the development server an attempt costs about 20 ms of
 * processor in all, so the time is Temporal's; what is checked here is that nothing is lost or doubled and that the
 * job's own cost per delivery does not grow with their number.
 */
describe('a large retry job', function () {
  this.timeout(15 * 60_000)

  async function force(each: number) {
    const stage = await createStage()
    const { organisationId } = stage.member
    const at = { organisationId, webhookId: stage.webhookId, count: each }
    const ids = [
      ...(await writeBacklog(stage.dataSource, { ...at, state: 'failed' })),
      ...(await writeBacklog(stage.dataSource, { ...at, state: 'waiting' })),
    ]
    const posthorn = await stage.start()
    const memory = watchMemory(posthorn.pid)
    const job = await runRetryJob(stage, posthorn, { mode: 'force' }, 12 * 60_000)
    const memoryMb = memory.stop()
    expect(job.total).to.equal(2 * each)
    const ledger = new Map<string, number>()
    for (const { headers } of stage.receiver.posts) {
      const id = String(headers['x-webhook-event-id'])
      ledger.set(id, (ledger.get(id) ?? 0) + 1)
    }
    expect(ledger.size).to.equal(ids.length)
    expect([...ledger.values()].every((count) => count === 1)).to.equal(true)
    const [left] = await stage.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM delivery WHERE state <> 'completed'`,
    )
    expect(left!.count).to.equal(0)
    await stage.close()
    return { ...job, memoryMb, perDeliveryMs: job.tookMs / (2 * each) }
  }

  it('attempts 500 and 4,000 deliveries once each, at the same cost per delivery', async function () {
    const small = await force(250)
    const large = await force(2_000)
    const figures = [small, large].map(
      ({ total, tookMs, firstPostAfterMs, perDeliveryMs }) =>
        `${total} in ${(tookMs / 1000).toFixed(1)} s, first POST after ${firstPostAfterMs} ms, ${perDeliveryMs.toFixed(1)} ms each`,
    )
    this.test!.title += ` (${figures.join('; ')})`
    // Flat: the second half of the job needs no more than the first, but for what a heap without pressure has not collected yet.
    const half = Math.floor(large.memoryMb.length / 2)
    const [early, late] = [
      Math.max(...large.memoryMb.slice(0, half)),
      Math.max(...large.memoryMb.slice(half)),
    ]
    this.test!.title += ` (memory at most ${early} MB in the first half, ${late} MB in the second)`
    expect(late).to.be.below(early * 1.5)
    expect(large.firstPostAfterMs).to.be.below(large.tookMs / 2)
    expect(large.perDeliveryMs).to.be.below(small.perDeliveryMs * 2)
    expect(large.progress).to.deep.equal([...large.progress].sort((a, b) => a - b))
  })
})
