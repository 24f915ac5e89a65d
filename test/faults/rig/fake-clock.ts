import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const LIBRARIES = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
]

/** The wall clock of a process that is started with `env`; its monotonic clock stays right. */
export type FakeClock = {
  env: Record<string, string>
  /** Steps the clock to that many seconds from the true time, within a tenth of a second. */
  set(offsetSeconds: number): void
  remove(): void
}

/** A clock to be stepped by hand, with libfaketime; null where that is not installed. */
export function createFakeClock(offsetSeconds: number): FakeClock | null {
  const library = LIBRARIES.find((path) => existsSync(path))
  if (library === undefined) return null
  const folder = mkdtempSync(join(tmpdir(), 'posthorn-clock-'))
  // PostgreSQL runs as a user of its own.
  chmodSync(folder, 0o755)
  const file = join(folder, 'offset')
  const set = (seconds: number): void => {
    writeFileSync(file, `${seconds < 0 ? '' : '+'}${seconds}`)
  }
  set(offsetSeconds)
  return {
    env: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_CACHE_DURATION: '0.1',
    },
    set,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
