/** Returns what a `$ref` into the document points to, or the value itself. */
export function resolveReference<T extends object>(document: object, value: T): T {
  if (!('$ref' in value)) return value
  const steps = String(value.$ref).replace('#/', '').split('/')
  let found: unknown = document
  for (const step of steps)
    found = (found as Record<string, unknown>)[step.replaceAll('~1', '/').replaceAll('~0', '~')]
  return resolveReference(document, found as T)
}
