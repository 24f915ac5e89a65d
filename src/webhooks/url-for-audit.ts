import { shortenUrl } from '../domain/webhook-name.ts'

/** Shortens a URL for the audit trail: its path and query may contain a credential. */
export function urlForAudit(url: string): string {
  return `${shortenUrl(url)}${new URL(url).search === '' ? '' : '?…'}`
}
