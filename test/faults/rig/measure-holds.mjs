// Loaded into a process under test with NODE_OPTIONS=--import. SIGUSR2 starts to measure how long the main thread holds
// the event loop; the next one prints the longest hold, in ms of processor time: what other programs take is not in it.
import { existsSync, readFileSync } from 'node:fs'

const INTERVAL_MS = 2
const STATISTICS = `/proc/self/task/${process.pid}/schedstat`

let longestMs = 0
let measuring = null

process.on('SIGUSR2', () => {
  if (!existsSync(STATISTICS)) process.stderr.write('longest hold: unknown\n')
  else if (measuring === null) start()
  else {
    clearInterval(measuring)
    process.stderr.write(`longest hold: ${longestMs.toFixed(1)} ms\n`)
  }
})

function start() {
  let lastMs = processorMs()
  measuring = setInterval(() => {
    const nowMs = processorMs()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
  }, INTERVAL_MS)
}

/** Of this thread; the kernel counts in nanoseconds. */
function processorMs() {
  return Number(readFileSync(STATISTICS, 'latin1').split(' ')[0]) / 1e6
}
