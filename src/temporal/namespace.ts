import { isGrpcServiceError } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import { SEARCH_ATTRIBUTE_NAMES } from './search-attributes.ts'

/** `INDEXED_VALUE_TYPE_KEYWORD` of temporal.api.enums.v1.IndexedValueType. */
const KEYWORD = 2

/** A namespace that does not answer within this time is not there for us. */
const CALL_TIMEOUT_MS = 2_000

/**
 * The id that Temporal gave the namespace when it was made: another one means that all of its data is gone. Empty where
 * we may not ask. Throws while Temporal is away, and when there is no such namespace.
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
 * Registers the search attributes of ours that the namespace lacks, and returns their names. Without them every start
 * is refused. Harmless to repeat. Throws where Temporal does not let us look or register.
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

/** True when the key of this process does not cover the call, or Temporal does not offer it. */
export function isNotPermitted(error: unknown): boolean {
  return isGrpcServiceError(error) && NOT_PERMITTED.includes(error.code)
}
