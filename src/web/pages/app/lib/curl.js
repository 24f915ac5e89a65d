/** @import { SignedRequest } from '../types.d.ts' */

/**
 * One word for a POSIX shell, whatever is in it.
 * @param {string} text
 */
export function shellQuoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * A command that sends the request. `--globoff`: brackets in a URL are no patterns; `--data-raw`: a body that begins with
 * `@` names no file.
 * @param {SignedRequest} request
 */
export function curlCommand({ method, url, headers, body }) {
  const lines = [
    `curl --globoff --request ${method} ${shellQuoted(url)}`,
    ...Object.entries(headers).map(([name, value]) => `--header ${shellQuoted(`${name}: ${value}`)}`),
    `--data-raw ${shellQuoted(body)}`,
  ]
  return lines.join(' \\\n  ')
}
