import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Lets nothing else run in this thread for `ms`, as a pause of the process does: what is due afterwards comes in its order,
 * timers before sockets.
 */
export async function blockProcess(ms: number): Promise<void> {
  await nextTurn()
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
