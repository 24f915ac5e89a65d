import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { release } from './release/release.ts'

/** `npm run release`: makes a release in release/ and prints its checksums. */
const folder = fileURLToPath(new URL('../../release', import.meta.url))
await release(folder)
process.stdout.write(`In release/:\n${readFileSync(join(folder, 'SHA256SUMS'), 'utf8')}`)
