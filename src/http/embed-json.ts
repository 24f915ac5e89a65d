/**
 * JSON text of an object whose member `name` is JSON text already and stands in it byte for byte, between the members
 * of `before` and of `after`. `before` has at least one member.
 */
export function embedJson(before: object, name: string, json: string, after: object = {}): string {
  const head = JSON.stringify(before).slice(0, -1)
  const tail = JSON.stringify(after).slice(1)
  return `${head},${JSON.stringify(name)}:${json}${tail === '}' ? '' : ','}${tail}`
}
