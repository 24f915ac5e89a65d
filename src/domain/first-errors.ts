const MAX_ERRORS = 100

/** A field may lie below names of many characters, which each of its errors repeats. */
const MAX_POINTER_CHARACTERS = 32_768

/** Returns the errors that an answer names: the first, and as many more as keep it small. */
export function firstErrors<T extends { readonly pointer: string }>(errors: readonly T[]): T[] {
  let left = MAX_POINTER_CHARACTERS
  return errors.slice(0, MAX_ERRORS).filter(({ pointer }, index) => {
    left -= pointer.length
    return index === 0 || left >= 0
  })
}
