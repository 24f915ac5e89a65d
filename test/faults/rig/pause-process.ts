import { setTimeout as delay } from 'node:timers/promises'

/** Stops a process for `forMs` as a paused virtual machine is stopped (SIGSTOP), and lets it go on. */
export async function pauseProcess(pid: number, forMs: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  try {
    await delay(forMs)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}
