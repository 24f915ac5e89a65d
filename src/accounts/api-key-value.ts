import { randomInt } from 'node:crypto'

const BASE_62 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** 43 characters of base 62 are 256 bits. */
const RANDOM_LENGTH = 43

const PREFIX_LENGTH = 8

/** A new key. `phk_` lets secret scanners recognise one that leaked; a double click selects it whole. */
export function generateApiKey(): string {
  const random = Array.from({ length: RANDOM_LENGTH }, () => BASE_62.charAt(randomInt(BASE_62.length)))
  return `phk_${random.join('')}`
}

/** The length of the visible prefix of a key, which distinguishes keys. */
export function apiKeyPrefix(key: string): string {
  return key.slice(0, PREFIX_LENGTH)
}
