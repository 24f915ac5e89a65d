import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { builtInCatalogue } from '../catalogue/built-in.ts'
import { openApiDocument } from '../http/openapi.ts'
import { routes } from '../http/routes/index.ts'

/** `npm run check:openapi`: compares docs/openapi.json with the routes; `-- --write` updates it. */
const file = fileURLToPath(new URL('../../docs/openapi.json', import.meta.url))
const document = `${JSON.stringify(openApiDocument(routes, builtInCatalogue), null, 2)}\n`

if (process.argv.includes('--write')) {
  writeFileSync(file, document)
} else if (readFileSync(file, 'utf8') === document) {
  process.stdout.write('docs/openapi.json matches the routes.\n')
} else {
  process.stderr.write('docs/openapi.json does not match the routes: npm run check:openapi -- --write\n')
  process.exitCode = 1
}
