import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { generateApiKey } from '../../src/accounts/api-keys.ts'
import { isKeyShaped, isWeakKey, MIN_KEY_LENGTH } from '../../src/credentials.ts'

describe('an API key', () => {
  it('has 32 to 200 visible ASCII characters', () => {
    for (const key of ['x'.repeat(32), '!~'.repeat(100)])
      expect(isKeyShaped(key, MIN_KEY_LENGTH)).to.equal(true)
    for (const key of [
      '',
      'x'.repeat(31),
      'x'.repeat(201),
      `${'x'.repeat(32)} `,
      `${'x'.repeat(32)}\n`,
      'é'.repeat(40),
    ])
      expect(isKeyShaped(key, MIN_KEY_LENGTH), key).to.equal(false)
  })

  it('is weak where it is not random', () => {
    for (const key of [
      'a'.repeat(40),
      'ab'.repeat(20),
      'abcdefghijklmnopqrstuvwxyz0123456789',
      '0123456789abcdef0123456789abcdef',
      '98765432109876543210987654321098',
      'passwordpasswordpasswordpassword',
      'correct-horse-batt correct-horse-batt'.replaceAll(' ', ''),
      `phk_${'0'.repeat(40)}`,
      '11112222333344445555666677778888',
    ])
      expect(isWeakKey(key), key).to.equal(true)
  })

  it('is not weak where it comes from a random source', () => {
    for (let round = 0; round < 500; round++) {
      expect(isWeakKey(generateApiKey())).to.equal(false)
      expect(isWeakKey(randomBytes(32).toString('hex'))).to.equal(false)
      expect(isWeakKey(randomBytes(24).toString('base64url'))).to.equal(false)
    }
  })
})
