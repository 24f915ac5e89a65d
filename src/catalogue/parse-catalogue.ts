import { Ajv2020 } from 'ajv/dist/2020.js'
import { toFieldErrors } from '../ajv-errors.ts'
import { duplicateMembers, nestingDepth } from '../domain/json-text.ts'
import { CatalogueError, createCatalogue, type Catalogue } from './catalogue.ts'
import { CatalogueDocumentSchema, type CatalogueDocument } from './document.ts'

/** Deeper than any schema that people write; keeps what reads it from recursing too deep. */
const MAX_DEPTH = 64

/** Reads a catalogue document. Throws CatalogueError naming every problem by its JSON pointer. */
export function parseCatalogue(text: string): Catalogue {
  const document = parseJson(text)
  const problems = duplicateMembers(text).map((pointer) => `${pointer} stands there twice`)
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true })
  const validate = ajv.compile<CatalogueDocument>(CatalogueDocumentSchema)
  if (!validate(document)) {
    const errors = toFieldErrors(validate.errors ?? [])
    throw new CatalogueError([
      ...problems,
      ...errors.map(({ pointer, detail }) => `${pointer || '/'} ${detail}`),
    ])
  }
  try {
    const catalogue = createCatalogue(document)
    if (problems.length === 0) return catalogue
  } catch (error) {
    if (!(error instanceof CatalogueError)) throw error
    problems.push(...error.problems)
  }
  throw new CatalogueError(problems)
}

function parseJson(text: string): unknown {
  if (nestingDepth(text) > MAX_DEPTH)
    throw new CatalogueError([`is nested deeper than ${MAX_DEPTH} arrays and objects`])
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    throw new CatalogueError([`is not valid JSON: ${error instanceof Error ? error.message : String(error)}`])
  }
}

/** Returns the document of a catalogue, with every default spelled out: `parseCatalogue` reads it again. */
export function printCatalogue({ eventKeys }: Catalogue): string {
  return JSON.stringify({ eventKeys }, null, 2)
}
