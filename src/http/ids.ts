const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** True for an id as we give them; anything else cannot exist and is not looked up. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}
