import type { Catalogue } from '../catalogue/catalogue.ts'

/**
 * Returns a function that gives what `make` makes of a catalogue, as the bytes of its JSON text: made once for a process's
 * catalogue, so that concurrent answers share them.
 */
export function bytesOfCatalogue(make: (catalogue: Catalogue) => object): (catalogue: Catalogue) => Buffer {
  const made = new WeakMap<Catalogue, Buffer>()
  return (catalogue) => {
    const bytes = made.get(catalogue) ?? Buffer.from(JSON.stringify(make(catalogue)))
    made.set(catalogue, bytes)
    return bytes
  }
}
