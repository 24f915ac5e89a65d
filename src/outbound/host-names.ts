/** True for `localhost` and every name under it, which never leave this machine (RFC 6761, section 6.3). */
export function isLocalhostName(hostname: string): boolean {
  const name = withoutTrailingDot(hostname)
  return name === 'localhost' || name.endsWith('.localhost')
}

/** The name without the one dot that marks it as fully qualified. */
export function withoutTrailingDot(hostname: string): string {
  return hostname.endsWith('.') ? hostname.slice(0, -1) : hostname
}

/** The address inside the brackets a URL puts around IPv6; every other host unchanged. */
export function withoutBrackets(hostname: string): string {
  return hostname.startsWith('[') && hostname.endsWith(']') ? hostname.slice(1, -1) : hostname
}
