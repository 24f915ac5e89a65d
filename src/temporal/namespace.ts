import { isGrpcServiceError } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import { SEARCH_ATTRIBUTE_NAMES } from './search-attributes.ts'

/** `INDEXED_VALUE_TYPE_KEYWORD` of temporal.api.enums.v1.IndexedValueType. */
const KEYWORD = 2

const CALL_TIMEOUT_MS = 2_000

/**
 * Returns the id of the namespace: another id than before means that its data is lost. Empty without the permission to
 * read it. Throws while Temporal is unavailable, and when there is no such namespace.
 */
export async function readNamespaceId(connection: NativeConnection, namespace: string): Promise<string> {
  try {
    const described = await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      connection.workflowService.describeNamespace({ namespace }),
    )
    return described.namespaceInfo?.id ?? ''
  } catch (error) {
    if (isNotPermitted(error)) return ''
    throw error
  }
}

/**
 * Registers our search attributes that are missing in the namespace, and returns their names. Without them every start is
 * refused. Idempotent. Throws without the permission to list or register them.
 */
export async function registerSearchAttributes(
  connection: NativeConnection,
  namespace: string,
): Promise<string[]> {
  return connection.withDeadline(Date.now() + 2 * CALL_TIMEOUT_MS, async () => {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace })
    const missing = SEARCH_ATTRIBUTE_NAMES.filter((name) => !(name in customAttributes))
    if (missing.length === 0) return []
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
    })
    return missing
  })
}

/** PERMISSION_DENIED and UNIMPLEMENTED of gRPC. */
const NOT_PERMITTED: readonly unknown[] = [7, 12]

/** True when the API key of this process does not permit the call, or Temporal does not implement it. */
export function isNotPermitted(error: unknown): boolean {
  return isGrpcServiceError(error) && NOT_PERMITTED.includes(error.code)
}
