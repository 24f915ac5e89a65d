import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { eventually } from '../../helpers/eventually.ts'
import { percentile } from '../../helpers/percentile.ts'
import type { PosthornProcess } from '../../helpers/processes/posthorn.ts'

/** Loads into the process what measures how long it holds its event loop. */
export const MEASURING = `--import ${fileURLToPath(new URL('./measure-holds.mjs', import.meta.url))}`

const ASK_READINESS = fileURLToPath(new URL('./ask-readiness.mjs', import.meta.url))

/** On a machine that does other work most answers take five times as long as the median may. */
const READY_MS = 200
const SLOW_READY_MS = 1_000

/** Of the processor; ordinary are 20 to 30 ms. An answer of `/readyz` takes a few iterations of the event loop. */
const MAX_HOLD_MS = 60

/**
 * Expects that `/readyz` of a process with {@link MEASURING} in its NODE_OPTIONS is answered in time while `work` runs,
 * requested by a process that does nothing else, and that its main thread never holds the event loop for long.
 */
export async function expectReadyDuring(posthorn: PosthornProcess, work: () => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [ASK_READINESS, posthorn.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const printed = text(child.stdout)
  process.kill(posthorn.pid, 'SIGUSR2')
  await work().finally(() => child.kill('SIGTERM'))
  process.kill(posthorn.pid, 'SIGUSR2')
  const answers = JSON.parse(await printed) as { status: number | string; ms: number }[]
  const hold = await eventually(() => {
    const [, longest] = /longest hold: (\S+)/.exec(posthorn.log()) ?? []
    if (longest === undefined) throw new Error('the longest hold is not printed')
    return longest
  })
  const times = answers.map(({ ms }) => ms)
  const shown = [0.5, 0.95, 1].map((share) => percentile(times, share).toFixed(0)).join(', ')
  const found = `readyz ${times.length} times: median, 95%, maximum ${shown} ms; longest hold ${hold} ms`
  expect([...new Set(answers.map(({ status }) => status))], found).to.deep.equal([200])
  expect(percentile(times, 0.5), found).to.be.below(READY_MS)
  expect(percentile(times, 0.95), found).to.be.below(SLOW_READY_MS)
  if (hold !== 'unknown') expect(Number(hold), found).to.be.below(MAX_HOLD_MS)
}
