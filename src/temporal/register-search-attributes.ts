import type { NativeConnection } from '@temporalio/worker'
import { SEARCH_ATTRIBUTE_NAMES } from './search-attributes.ts'

/** `INDEXED_VALUE_TYPE_KEYWORD` of temporal.api.enums.v1.IndexedValueType. */
const KEYWORD = 2

/**
 * Registers what is missing of our search attributes in the namespace. Harmless to repeat.
 * Without them every start would be refused. Throws where the engine does not let us look or register.
 */
export async function registerSearchAttributes(
  connection: NativeConnection,
  namespace: string,
): Promise<void> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
  const missing = SEARCH_ATTRIBUTE_NAMES.filter((name) => !(name in customAttributes))
  if (missing.length === 0) return
  await connection.operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
  })
}
