import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { builtInCatalogue } from '../catalogue/built-in-catalogue.ts'
import { openApiDocument } from '../http/openapi.ts'
import { routes } from '../http/routes/index.ts'
import { changedLines, openApiSnapshot } from './openapi-snapshot.ts'

/**
 * `npm run check:openapi`: compares what `posthorn openapi` prints with docs/openapi-snapshot.txt, and names the lines
 * that changed; `-- --write` updates it.
 */
const file = fileURLToPath(new URL('../../docs/openapi-snapshot.txt', import.meta.url))
const lines = openApiSnapshot(openApiDocument(routes, builtInCatalogue))

if (process.argv.includes('--write')) writeFileSync(file, `${lines.join('\n')}\n`)
const changed = changedLines(readFileSync(file, 'utf8').trimEnd().split('\n'), lines)
if (changed.length === 0) {
  process.stdout.write('docs/openapi-snapshot.txt matches the routes.\n')
} else {
  const renew = 'If that is intended: npm run check:openapi -- --write'
  process.stderr.write(`The API is not that of docs/openapi-snapshot.txt:\n${changed.join('\n')}\n${renew}\n`)
  process.exitCode = 1
}
