import { GENERATED_PARTS, readPart, writePart } from './generated-documents.ts'

/** `npm run check:docs`: the generated parts of the documents must match the code; `-- --write` brings them up to date. */
const shouldWrite = process.argv.includes('--write')

for (const part of GENERATED_PARTS) {
  if (shouldWrite) writePart(part)
  if (readPart(part) === part.render()) continue
  process.stderr.write(`${part.file} does not match the code (${part.name}): npm run check:docs -- --write\n`)
  process.exitCode = 1
}
if (process.exitCode === undefined) process.stdout.write('The generated parts of docs match the code.\n')
