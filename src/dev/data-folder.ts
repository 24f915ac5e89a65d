import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Key ring of a development instance: made once and kept in its data folder, readable by its owner only. */
export function developmentKeyRing(dataDir: string): string {
  const file = join(dataDir, 'encryption-keys')
  if (existsSync(file)) return readFileSync(file, 'utf8').trim()
  mkdirSync(dataDir, { recursive: true })
  const ring = `dev1:${randomBytes(32).toString('hex')}`
  writeFileSync(file, `${ring}\n`, { mode: 0o600 })
  return ring
}
