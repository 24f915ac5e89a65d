import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/**
 * `reachable`: private addresses that a socket without a guard got through to; `controlHits`: what the rig saw of that.
 */
export type RigReport = {
  targets: number
  /** What was not as it should be, in words. */
  faults: string[]
  reachable: number
  controlHits: number
  alternating: string[]
  kept: string[]
  /** Connections to, and bytes that came at, addresses that are not public. */
  breaches: number
  bytes: number
  publicHits: number
}

// A network with no way out, in which every address there is belongs to this machine, and a DNS server of our own.
const SET_UP = `set -e
ip link set lo up
ip route add local 0.0.0.0/0 dev lo
ip -6 route add local ::/0 dev lo
mount --bind "$RIG_RESOLV_CONF" /etc/resolv.conf`
const UNSHARE = 'unshare'
const LIMIT_MS = 60_000

/** Runs rig-main.ts in a network namespace of its own; or returns why this machine does not allow it. */
export async function runRig(): Promise<RigReport | { impossible: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-rig-'))
  try {
    const resolvConf = join(folder, 'resolv.conf')
    writeFileSync(resolvConf, 'nameserver 127.0.0.1\n')
    const env = { ...process.env, RIG_RESOLV_CONF: resolvConf }
    // Who is not root becomes it inside, where the machine lets everybody make namespaces.
    const flags = [...(process.getuid?.() === 0 ? [] : ['--map-root-user']), '--net', '--mount', 'bash', '-c']
    const probe = spawnSync(UNSHARE, [...flags, SET_UP], { env, encoding: 'utf8', timeout: 10_000 })
    if (probe.status !== 0) return { impossible: probe.error?.message ?? probe.stderr.trim() }
    const main = fileURLToPath(new URL('./rig-main.ts', import.meta.url))
    const command = `${SET_UP}\nexec "${process.execPath}" --import tsx "${main}"`
    const options = { env, timeout: LIMIT_MS, killSignal: 'SIGKILL' as const, maxBuffer: 1e7 }
    const { stdout } = await promisify(execFile)(UNSHARE, [...flags, command], options)
    return JSON.parse(stdout) as RigReport
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
