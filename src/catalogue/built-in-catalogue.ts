import { readFileSync } from 'node:fs'
import type { Catalogue } from './catalogue.ts'
import { parseCatalogue } from './parse-catalogue.ts'

/**
 * The catalogue of a process for which the operator configures no other: the event keys of spec 6.1, in its order, with
 * the payloads of 6.3. Where 6.3 shows none, the enumerations that are complete in 2.4 are checked where present.
 */
export const builtInCatalogue: Catalogue = await parseCatalogue(
  readFileSync(new URL('./built-in-catalogue.json', import.meta.url), 'utf8'),
)
