import type { Links, Route } from '../route.ts'
import { pathParameters } from './path-parameters.ts'

/**
 * Returns the links of an answer. Parameters of the target's path that the request had too are passed on. Throws for an
 * operation that does not exist.
 */
export function linksOf(route: Route, links: Links, routes: readonly Route[]): Record<string, object> {
  const own = new Set(pathParameters(route.path))
  return Object.fromEntries(
    Object.entries(links).map(([operationId, given]) => {
      const target = routes.find((candidate) => candidate.operationId === operationId)
      if (target === undefined) throw new Error(`a link leads to ${operationId}, which does not exist`)
      const inherited = pathParameters(target.path)
        .filter((name) => own.has(name))
        .map((name): [string, string] => [name, `$request.path.${name}`])
      return [operationId, { operationId, parameters: { ...Object.fromEntries(inherited), ...given } }]
    }),
  )
}
