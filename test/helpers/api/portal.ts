import type { ApiResponse, TestApi } from './api.ts'

/** What a browser says of a request of the page's own origin. */
export const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }

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
