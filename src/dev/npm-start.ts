import { resolve } from 'node:path'
import { OWNER_ONLY_UMASK, prepareDataFolder, lockDataFolder } from './data-folder.ts'

/** `npm start`. Locks the data folder before the rest is loaded, so that a second start on it is refused at once. */
process.umask(OWNER_ONLY_UMASK)
const { env } = process

try {
  const dataDir = resolve(env['POSTHORN_DATA'] || '.posthorn')
  const ports = {
    api: portOf('PORT', 3000),
    temporal: portOf('TEMPORAL_PORT', 7233),
    ui: portOf('TEMPORAL_UI_PORT', 8233),
  }
  const apiUrl = `http://127.0.0.1:${ports.api}`
  prepareDataFolder(dataDir)
  const lock = await lockDataFolder(dataDir, apiUrl)
  const { startDevelopment } = await import('../cli/dev.ts')
  await startDevelopment({ dataDir, ports, apiUrl, lock })
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

function portOf(variable: string, fallback: number): number {
  const text = env[variable] ?? ''
  if (text === '') return fallback
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (port < 1 || port > 65_535) throw new Error(`${variable} must be a port from 1 to 65535`)
  return port
}
