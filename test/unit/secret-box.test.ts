import { expect } from 'chai'
import { createSecretBox, generateSigningSecret } from '../../src/secret-box.ts'

const [oldKey, newKey] = ['a1', 'b2'].map((byte) => ({
  id: `key-${byte}`,
  key: Buffer.from(byte.repeat(32), 'hex'),
}))
const box = createSecretBox([oldKey!])
const secret = generateSigningSecret()

describe('a secret box', () => {
  it('opens what it sealed', () => {
    expect(box.open('webhook-1', box.seal('webhook-1', secret))).to.equal(secret)
  })

  it('never seals one secret to the same text twice', () => {
    expect(box.seal('webhook-1', secret)).to.not.equal(box.seal('webhook-1', secret))
  })

  it('reveals only which key sealed the secret', () => {
    const [keyId, ...parts] = box.seal('webhook-1', secret).split('|')
    expect(keyId).to.equal('key-a1')
    for (const part of parts) expect(Buffer.from(part, 'base64url').toString('latin1')).to.not.include(secret)
  })

  it('refuses a secret that was sealed for another webhook', () => {
    const sealed = box.seal('webhook-1', secret)
    expect(() => box.open('webhook-2', sealed)).to.throw()
  })

  for (const [index, part] of ['vector', 'text', 'tag'].entries()) {
    it(`refuses a changed byte of the ${part}`, () => {
      const sealed = box.seal('webhook-1', secret)
      const length = Buffer.from(sealed.split('|')[index + 1]!, 'base64url').length
      for (let at = 0; at < length; at++) {
        const changed = changePart(sealed, index + 1, (bytes) => bytes.with(at, bytes[at]! ^ 1))
        expect(() => box.open('webhook-1', changed), `byte ${at}`).to.throw()
      }
    })
  }

  for (const length of [0, 4, 12, 15, 17]) {
    it(`refuses a tag of ${length} bytes`, () => {
      const sealed = changePart(box.seal('webhook-1', secret), 3, (tag) => {
        const other = new Uint8Array(length)
        other.set(tag.slice(0, length))
        return other
      })
      expect(() => box.open('webhook-1', sealed)).to.throw('not a sealed secret')
    })
  }

  for (const length of [0, 11, 16]) {
    it(`refuses an initialisation vector of ${length} bytes`, () => {
      const sealed = changePart(box.seal('webhook-1', secret), 1, () => new Uint8Array(length))
      expect(() => box.open('webhook-1', sealed)).to.throw('not a sealed secret')
    })
  }

  it('refuses bytes after the tag', () => {
    expect(() => box.open('webhook-1', `${box.seal('webhook-1', secret)}|x`)).to.throw('not a sealed secret')
  })

  for (const text of ['', 'key-a1', 'key-a1|', 'key-a1||', 'key-a1|||', '|||']) {
    it(`refuses the text "${text}"`, () => {
      expect(() => box.open('webhook-1', text)).to.throw()
    })
  }

  it('refuses a key with the same name and other bytes', () => {
    const other = createSecretBox([{ id: 'key-a1', key: newKey!.key }])
    expect(() => other.open('webhook-1', box.seal('webhook-1', secret))).to.throw()
  })

  it('reports a wrong key, and prints neither the secret nor its sealed text', () => {
    const sealed = box.seal('webhook-1', secret)
    const error = errorOf(() => box.open('webhook-2', sealed))
    expect(error.message).to.match(/^key "key-a1" does not open it/)
    const told = JSON.stringify([error.message, error.stack, error])
    for (const hidden of [secret, ...sealed.split('|').slice(1)]) expect(told).to.not.include(hidden)
  })

  it('does not print a secret that was stored in clear', () => {
    for (const text of [secret, `${secret}|`, `${secret}|a|b|c`]) {
      const { message } = errorOf(() => box.open('webhook-1', text))
      expect(message).to.equal('not a sealed secret')
    }
  })

  it('names the missing key', () => {
    const other = createSecretBox([newKey!])
    expect(() => other.open('webhook-1', box.seal('webhook-1', secret))).to.throw('key-a1')
  })

  it('opens what an older key sealed, and seals with the newest', () => {
    const rotated = createSecretBox([newKey!, oldKey!])
    expect(rotated.open('webhook-1', box.seal('webhook-1', secret))).to.equal(secret)
    expect(rotated.seal('webhook-1', secret)).to.match(/^key-b2\|/)
    expect(rotated.newestKeyId).to.equal('key-b2')
  })

  it('refuses an empty key ring', () => {
    expect(() => createSecretBox([])).to.throw('empty')
  })
})

describe('generateSigningSecret', () => {
  it('returns 64 lower-case hexadecimal characters, never the same', () => {
    const secrets = Array.from({ length: 1000 }, generateSigningSecret)
    for (const one of secrets) expect(one).to.match(/^[0-9a-f]{64}$/)
    expect(new Set(secrets).size).to.equal(1000)
  })
})

function errorOf(work: () => unknown): Error {
  try {
    work()
  } catch (error) {
    return error as Error
  }
  throw new Error('it opened')
}

function changePart(sealed: string, index: number, change: (bytes: Uint8Array) => Uint8Array): string {
  const parts = sealed.split('|')
  return parts
    .map((part, at) =>
      at === index
        ? Buffer.from(change(new Uint8Array(Buffer.from(part, 'base64url')))).toString('base64url')
        : part,
    )
    .join('|')
}
