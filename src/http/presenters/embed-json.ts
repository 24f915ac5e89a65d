/**
 * Returns the JSON text of an object with the members of `before`, then `name` with the text `json` byte for byte, then
 * the members of `after`. `before` has at least one member.
 */
export function embedJson(before: object, name: string, json: string, after: object = {}): string {
  const head = JSON.stringify(before).slice(0, -1)
  const tail = JSON.stringify(after).slice(1)
  return `${head},${JSON.stringify(name)}:${json}${tail === '}' ? '' : ','}${tail}`
}
