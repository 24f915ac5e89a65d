import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/** A key of the key ring: a public id and 32 secret bytes. */
export type EncryptionKey = { id: string; key: Buffer }

/** Encrypts texts; what was sealed for one owner (a webhook, for signing secrets) opens for no other. */
export type SecretBox = {
  /** The key that seals. */
  readonly newestKeyId: string
  seal(ownerId: string, secret: string): string
  open(ownerId: string, sealed: string): string
}

/** 96 random bits, as NIST SP 800-38D asks for random initialisation vectors. */
const IV_BYTES = 12
/** Given explicitly: without it Node accepts tags cut down to 4 bytes. */
const TAG_BYTES = 16

/**
 * What a sealed secret begins with. Anything else is not shown to anybody: it could be a secret in clear, which at 64
 * characters is too long to pass for the id of a key.
 */
const KEY_ID = /^([A-Za-z0-9_-]{1,32})\|/

/**
 * AES-256-GCM over a key ring: the first key seals, every key opens.
 * A sealed secret reads `keyId|iv|ciphertext|tag`, the last three in base64url.
 * `open` throws when the key is unknown or the text was made for another owner or tampered with; its errors name the
 * key and nothing else. `boundTo`: the owner and the purpose, which are authenticated (AAD).
 */
export function createSecretBox(
  keys: readonly EncryptionKey[],
  boundTo: (ownerId: string) => string = signingSecretOf,
): SecretBox {
  const [sealing] = keys
  if (sealing === undefined) throw new Error('the key ring is empty')
  const byId = new Map(keys.map((entry) => [entry.id, entry.key]))

  function open(ownerId: string, sealed: string): string {
    const keyId = KEY_ID.exec(sealed)?.[1]
    if (keyId === undefined) throw new Error('not a sealed secret')
    const key = byId.get(keyId)
    if (key === undefined) throw new Error(`the key ring holds no key "${keyId}"`)
    const [iv, ciphertext, tag, ...more] = sealed
      .split('|')
      .slice(1)
      .map((part) => Buffer.from(part, 'base64url'))
    if (iv?.length !== IV_BYTES || ciphertext === undefined || tag?.length !== TAG_BYTES || more.length > 0)
      throw new Error('not a sealed secret')
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(boundTo(ownerId)))
    decipher.setAuthTag(tag)
    try {
      return Buffer.concat([decipher.update(ciphertext), decipher.final()]).toString('utf8')
    } catch {
      // Node's own words ("Unsupported state or unable to authenticate data") do not help an operator.
      throw new Error(
        `key "${keyId}" does not open it: it was sealed with another key or for another webhook, or changed`,
      )
    }
  }

  return {
    newestKeyId: sealing.id,

    seal(ownerId, secret) {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', sealing.key, iv, { authTagLength: TAG_BYTES })
      cipher.setAAD(Buffer.from(boundTo(ownerId)))
      const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
      return [
        sealing.id,
        ...[iv, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url')),
      ].join('|')
    },

    open,
  }
}

/** A new signing secret: 64 lower-case hexadecimal characters (spec 2.1). */
export function generateSigningSecret(): string {
  return randomBytes(32).toString('hex')
}

function signingSecretOf(webhookId: string): string {
  return `webhook:${webhookId}:secret:v1`
}
