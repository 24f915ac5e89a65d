// Usage: node node.mjs SECRET SIGNATURE_HEADER < raw-body
import { createHmac, timingSafeEqual } from 'node:crypto'
import { buffer } from 'node:stream/consumers'

// The key is the secret's 64 characters as they are shown: do not decode them from hex.
function isValid(secret, signatureHeader, rawBody) {
  const match = /^sha256=((?:[0-9a-fA-F]{2})+)$/.exec(signatureHeader ?? '')
  if (!match) return false
  const given = Buffer.from(match[1], 'hex')
  const expected = createHmac('sha256', secret).update(rawBody).digest()
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const [secret, signatureHeader] = process.argv.slice(2)
const valid = isValid(secret, signatureHeader, await buffer(process.stdin))
console.log(valid ? 'valid' : 'invalid')
process.exitCode = valid ? 0 : 1
