import { expect } from 'chai'
import { parseOperatorKeys } from '../../../src/config/parsers.ts'

const SECRET = 'Zr8vQ2mT5xWc9KbN4jHs7LdF1gYp6RtE'
const OTHER = 'b3Xq7Vn1Kz9Mw5Tc2Rj8Hf4Lp6Yd0SgA'

describe('POSTHORN_OPERATOR_KEYS', () => {
  it('holds names, secrets and scopes', () => {
    expect(parseOperatorKeys('')).to.deep.equal([])
    expect(parseOperatorKeys(`one:${SECRET}:manage+publish, two:${OTHER}:portal`)).to.deep.equal([
      { name: 'one', secret: SECRET, scopes: ['manage', 'publish'] },
      { name: 'two', secret: OTHER, scopes: ['portal'] },
    ])
  })

  it('is refused with every problem at once, by the number of the entry, without its text', () => {
    const text = [
      'a b:short:manage',
      `one:${SECRET}:manage+all`,
      `one:${OTHER}:manage+manage`,
      `three:${OTHER}:publish`,
      `four:${'ab'.repeat(20)}:publish`,
      SECRET,
      '',
    ].join(',')
    const { message } = refusalOf(text)
    for (const problem of [
      'number 1 needs a name',
      'number 1 needs a secret of 32',
      'number 2 needs different scopes',
      'number 3 needs different scopes',
      'number 3 has the name of an earlier one',
      'number 4 has the secret of an earlier one',
      'number 5 has a secret that is too easy to guess',
      'number 6 is not name:secret:scopes',
      'number 7 is not name:secret:scopes',
    ])
      expect(message).to.include(problem)
    for (const given of [SECRET, OTHER, 'short', 'abab']) expect(message).to.not.include(given)
  })
})

function refusalOf(text: string): Error {
  try {
    parseOperatorKeys(text)
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('the text was accepted')
}
