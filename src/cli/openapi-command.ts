import { loadConfig } from '../config/load.ts'
import { openApiDocument } from '../http/openapi.ts'
import { routes } from '../http/routes/index.ts'
import { loadCatalogue } from './catalogue-file.ts'
import type { Arguments, Output } from './command-line/command.ts'

/** `posthorn openapi`. */
export async function runOpenApi(_args: Arguments, { print }: Output): Promise<number> {
  const catalogue = await loadCatalogue(loadConfig(process.env, ['catalogueFile']).catalogueFile)
  print(JSON.stringify(openApiDocument(routes, catalogue), null, 2))
  return 0
}
