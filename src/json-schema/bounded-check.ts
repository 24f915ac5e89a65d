import type { ErrorObject, ValidateFunction } from 'ajv'
import { isQuicklyChecked } from './count-checks.ts'

/**
 * Returns a check whose errors are bounded; it returns none for a value that fits. It finds all errors of a value that
 * is quickly checked, with the validator that `compileAll` returns, and the first one of any other: `allErrors` of ajv
 * ends with the value only. `findFirst` stops at the first error.
 */
export function createBoundedCheck(
  schema: object,
  findFirst: ValidateFunction,
  compileAll: () => ValidateFunction,
): (value: unknown) => readonly ErrorObject[] {
  let findAll: ValidateFunction | null = null
  return (value) => {
    if (findFirst(value)) return []
    if (!isQuicklyChecked(schema, value)) return findFirst.errors ?? []
    findAll ??= compileAll()
    return findAll(value) ? [] : (findAll.errors ?? [])
  }
}
