const ID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}'

/** `/`, `/webhooks`, `/webhooks/{id}` and `/webhooks/{id}/deliveries/{id}`; nothing else is a page of the area. */
const PORTAL_PATH = new RegExp(`^/(?:webhooks(?:/(${ID})(?:/deliveries/(${ID}))?)?)?$`)

/**
 * Returns the address of a page of the developer area by its path within it, such as `/webhooks/{id}`; null for every
 * other text, so that no path leads out of the area.
 */
export function developerAddress(path: string): string | null {
  const match = PORTAL_PATH.exec(path)
  if (match === null) return null
  const [webhook, delivery] = match.slice(1).map((id: string | undefined) => id?.toLowerCase())
  if (webhook === undefined) return '/developer'
  const parameters = new URLSearchParams(delivery === undefined ? { webhook } : { webhook, delivery })
  return `/developer?${parameters.toString()}`
}
