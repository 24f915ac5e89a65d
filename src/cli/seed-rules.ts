import { isKeyShaped, isWeakKey, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../domain/api-key-shape.ts'
import type { Seed } from './seed-file.ts'

/** A value that may stand only once within `scope`, and where it stands. */
type Named = { pointer: string; scope: string; value: string }

/** Pointers of what stands twice: an id, a name of a key within its member, or a key anywhere in the file. */
export function duplicatesIn(seed: Seed): string[] {
  const seen = new Set<string>()
  return namesIn(seed).flatMap(({ pointer, scope, value }) => {
    const identity = JSON.stringify([scope, value])
    if (seen.has(identity)) return [pointer]
    seen.add(identity)
    return []
  })
}

/** The keys that may not be used, and why; the key itself is never repeated. */
export function badKeysIn(seed: Seed): { pointer: string; problem: string }[] {
  return namesIn(seed).flatMap(({ pointer, scope, value }) => {
    if (scope !== 'key') return []
    if (!isKeyShaped(value, MIN_KEY_LENGTH))
      return [{ pointer, problem: `must be ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} visible ASCII characters` }]
    return isWeakKey(value) ? [{ pointer, problem: WEAK }] : []
  })
}

const WEAK =
  'is too easy to guess: take one from a random source, such as openssl rand -hex 32, or leave it out to have one generated'

function namesIn({ organisations }: Seed): Named[] {
  return organisations.flatMap((organisation, index) => {
    const pointer = `/organisations/${index}`
    const id = { pointer: `${pointer}/id`, scope: 'organisation', value: organisation.id }
    return [id, ...(organisation.members ?? []).flatMap((member, at) => namesOf(member, pointer, at))]
  })
}

type Member = NonNullable<Seed['organisations'][number]['members']>[number]

function namesOf(member: Member, organisation: string, index: number): Named[] {
  const pointer = `${organisation}/members/${index}`
  const keys = (member.apiKeys ?? []).flatMap(({ name, key }, at) => {
    const named = { pointer: `${pointer}/apiKeys/${at}/name`, scope: pointer, value: name }
    if (key === undefined) return [named]
    return [named, { pointer: `${pointer}/apiKeys/${at}/key`, scope: 'key', value: key }]
  })
  return [{ pointer: `${pointer}/id`, scope: organisation, value: member.id }, ...keys]
}
