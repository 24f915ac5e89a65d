/** What an operator key may do: manage organisations, members and API keys, publish for every organisation, open the portal. */
export const OPERATOR_SCOPES = ['manage', 'publish', 'portal'] as const

export type OperatorScope = (typeof OPERATOR_SCOPES)[number]

/** A key of the platform's own backend, from `POSTHORN_OPERATOR_KEYS`. */
export type OperatorKey = { name: string; secret: string; scopes: readonly OperatorScope[] }

export function isOperatorScope(text: string): text is OperatorScope {
  return OPERATOR_SCOPES.some((scope) => scope === text)
}
