import { GENERATED_PARTS, readPart, writePart } from './generated-documents.ts'
import { changedLines } from './openapi-snapshot.ts'

/**
 * `npm run check:docs`: the generated parts of the documents must match the code. Names the lines that do not;
 * `-- --write` brings them up to date.
 */
const shouldWrite = process.argv.includes('--write')

for (const part of GENERATED_PARTS) {
  if (shouldWrite) writePart(part)
  const [written, rendered] = [readPart(part), part.render()]
  if (written === rendered) continue
  const changed = changedLines(written.split('\n'), rendered.split('\n')).join('\n')
  const renew = 'If that is intended: npm run check:docs -- --write'
  process.stderr.write(`${part.file} does not match the code:\n${changed}\n${renew}\n`)
  process.exitCode = 1
}
if (process.exitCode === undefined) process.stdout.write('The generated parts of docs match the code.\n')
