import { execFileSync } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { verify } from '@octokit/webhooks-methods'
import { expect } from 'chai'
import fc from 'fast-check'
import { sign } from '../../../src/outbound/signed-headers.ts'

// 000102…1e1f: 64 characters that look like hex.
const SECRET = Array.from({ length: 32 }, (_value, index) => index.toString(16).padStart(2, '0')).join('')

// A program of the machine, not a dependency of the package.
const OPENSSL = 'openssl'

const VECTORS: [secret: string, body: string, hex: string][] = [
  // Published by GitHub in its documentation of webhook deliveries.
  [
    "It's a Secret to Everybody",
    'Hello, World!',
    '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  ],
  [SECRET, '{}', '2221617750c71dc0939ac54b4ed35c03c2232fa0109b7b7a8fabdac1c477ed51'],
  [
    SECRET,
    '{"id":"evt_1","name":"é✓😀"}',
    '5f10eaa6d6b5f6c412a105c732975f24fc693127c71b2a4db469d5613cae1fb3',
  ],
]

function opensslHmac(secret: string, body: Buffer): string {
  const output = execFileSync(OPENSSL, ['dgst', '-sha256', '-hmac', secret, '-r'], { input: body })
  return output.toString('ascii').slice(0, 64)
}

describe('sign', () => {
  for (const [secret, body, hex] of VECTORS) {
    it(`returns the published signature of ${body}`, () => {
      expect(sign(secret, Buffer.from(body))).to.equal(`sha256=${hex}`)
    })
  }

  it('signs an empty body', () => {
    expect(sign(SECRET, Buffer.alloc(0))).to.match(/^sha256=a859f019[0-9a-f]{48}ffc0a475$/)
  })

  it('keys with the secret as shown, not with the bytes its hex stands for', () => {
    const decoded = createHmac('sha256', Buffer.from(SECRET, 'hex')).update('{}').digest('hex')
    expect(decoded.slice(0, 8)).to.equal('86227fe9')
    expect(sign(SECRET, Buffer.from('{}'))).to.not.contain(decoded)
  })

  it('returns another signature when the case of the secret changes', () => {
    const body = Buffer.from('{}')
    expect(sign(SECRET.toUpperCase(), body)).to.not.equal(sign(SECRET, body))
  })

  it('is accepted by an independent verifier for every JSON body', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json(), async (body) => {
        const secret = randomBytes(32).toString('hex')
        expect(await verify(secret, body, sign(secret, Buffer.from(body)))).to.equal(true)
      }),
      { numRuns: 200 },
    )
  })

  it('agrees with openssl on bytes that are not text', () => {
    for (const size of [0, 1, 63, 64, 65, 70_000]) {
      const secret = randomBytes(32).toString('hex')
      const body = randomBytes(size)
      expect(sign(secret, body)).to.equal(`sha256=${opensslHmac(secret, body)}`)
    }
  })
})
