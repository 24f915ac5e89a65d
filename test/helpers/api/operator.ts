import { createOperatorKeys } from '../../../src/accounts/operator.ts'
import type { OperatorKey } from '../../../src/domain/permissions.ts'
import type { ApiResponse, CallOptions, TestApi } from './api.ts'

/** Operator keys of the tests, one per scope and one with all. */
const TEST_OPERATOR_KEYS = [
  {
    name: 'all',
    secret: 'op_all_7Hq2ZxWv9KtR4mNc8YbJ3sLd6F',
    scopes: ['manage', 'publish', 'portal', 'observe'],
  },
  { name: 'manager', secret: 'op_man_5Gt8BnYp1XwQ7zKd4RcV2hMs9J', scopes: ['manage'] },
  { name: 'publisher', secret: 'op_pub_3Lk9DvTq6ZxS1bWn8HcY5rFm2P', scopes: ['publish'] },
  { name: 'portal', secret: 'op_por_8Wd4CzMk2JtN7xBq5VgR9yHs1L', scopes: ['portal'] },
  { name: 'observer', secret: 'op_obs_6Jr1EvPk4QwX9tCz3MhL8bYn5D', scopes: ['observe'] },
] as const satisfies readonly OperatorKey[]

type Name = (typeof TEST_OPERATOR_KEYS)[number]['name']

export const testOperatorKeys = createOperatorKeys(TEST_OPERATOR_KEYS)

/** The options of a call with the operator key of this name. */
export function asOperator(name: Name = 'all', options: CallOptions = {}): CallOptions {
  return { ...options, headers: { 'x-operator-key': secretOf(name), ...options.headers } }
}

export function secretOf(name: Name): string {
  const found = TEST_OPERATOR_KEYS.find((key) => key.name === name)
  if (found === undefined) throw new Error(`there is no key ${name}`)
  return found.secret
}

/** POSTHORN_OPERATOR_KEYS of a process that knows these keys. */
export function operatorKeysText(): string {
  return TEST_OPERATOR_KEYS.map(({ name, secret, scopes }) => `${name}:${secret}:${scopes.join('+')}`).join(
    ',',
  )
}

/** What a browser says of a request of the page's own origin. */
export const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }

/** Creates a portal link of a member. */
export function createPortalLink(
  api: Pick<TestApi, 'call'>,
  { organisationId, memberId }: { organisationId: string; memberId: string },
  body: object = {},
): Promise<ApiResponse> {
  const path = `/api/operator/organisations/${organisationId}/members/${memberId}/portal-links`
  return api.call('POST', path, asOperator('portal', { body }))
}

export function portalLinkOf({ json }: ApiResponse): { url: string; expiresAt: string } {
  return json as { url: string; expiresAt: string }
}

/** Returns the token in the fragment of a link that was created. */
export function tokenOf({ json }: Pick<ApiResponse, 'json'>): string {
  return new URL((json as { url: string }).url).hash.replace('#portal=', '')
}

/** Opens a link as the page does. */
export function openPortalLink(
  api: Pick<TestApi, 'call'>,
  token: string,
  headers: Record<string, string> = SAME_ORIGIN,
): Promise<ApiResponse> {
  return api.call('POST', '/api/session/portal-link', { headers, body: { token } })
}
