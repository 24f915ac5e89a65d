import { isObject } from '../json-schema/count-checks.ts'
import { documentProblems } from '../json-schema/field-errors.ts'
import { duplicateMembers, nestingDepth } from '../domain/text-rules.ts'
import {
  CatalogueError,
  compileCatalogue,
  exampleProblems,
  type Catalogue,
  type CostlyExample,
  CatalogueDocumentSchema,
} from './catalogue.ts'
import { createPayloadThreads } from './payload-threads.ts'

/** Deeper than any schema that people write; keeps what reads it from recursing too deep. */
const MAX_DEPTH = 64

/** For the examples of a thousand schemas of which each takes too long. */
const MAX_EXAMPLES_MS = 600_000

/** Reads a catalogue document. Throws CatalogueError naming every problem by its JSON pointer. */
export async function parseCatalogue(text: string): Promise<Catalogue> {
  const document = parseJson(text)
  const { catalogue, problems, costlyExamples } = compileCatalogue(eventKeysOf(document))
  const all = [
    ...duplicateMembers(text).map((pointer) => `${pointer} stands there twice`),
    ...documentProblems(CatalogueDocumentSchema, document),
    ...problems,
    ...(await problemsOfCostly(costlyExamples)),
  ]
  if (catalogue === null || all.length > 0) throw new CatalogueError(all)
  return catalogue
}

function eventKeysOf(document: unknown): readonly unknown[] {
  const { eventKeys } = isObject(document) ? document : {}
  return Array.isArray(eventKeys) ? eventKeys : []
}

/** Checks examples as payloads are checked, so that one that takes too long is named. */
async function problemsOfCostly(examples: readonly CostlyExample[]): Promise<string[]> {
  const eventKeys = examples.map(({ pointer, schema }) => ({ key: pointer, schema }))
  const threads = createPayloadThreads(eventKeys, {
    threads: 1,
    maxWaitMs: MAX_EXAMPLES_MS,
    maxWaiting: Infinity,
  })
  try {
    const problems = await Promise.all(
      examples.map(async ({ pointer, example }) => {
        const json = JSON.stringify({ data: example })
        const verdict = await threads.check({ organisationId: '', eventKey: pointer, json })
        if (verdict.kind === 'checked') return exampleProblems(pointer, verdict.errors)
        return [`${pointer}/example takes too long to check, by its schema`]
      }),
    )
    return problems.flat()
  } finally {
    await threads.close()
  }
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
