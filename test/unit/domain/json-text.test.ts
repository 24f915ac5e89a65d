import { expect } from 'chai'
import fc from 'fast-check'
import { memberText, nestingDepth, stripWhiteSpace } from '../../../src/domain/json-text.ts'

/** A JSON text with random white space between its tokens, and the value it stands for. */
const spacedJson = fc
  .tuple(
    fc.jsonValue({ stringUnit: 'binary' }),
    fc.array(fc.constantFrom('', ' ', '\t', '\n', '\r', ' \r\n '), { minLength: 1, maxLength: 20 }),
  )
  .map(([value, spaces]) => ({ value, text: spaced(JSON.stringify(value), spaces) }))

describe('stripWhiteSpace', () => {
  it('changes nothing of what the text means, and leaves no white space between tokens', () => {
    fc.assert(
      fc.property(spacedJson, ({ value, text }) => {
        expect(stripWhiteSpace(text)).to.equal(JSON.stringify(value))
      }),
      { numRuns: 500 },
    )
  })

  it('changes nothing when it is done again', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', '\\', ' ', '{', '\n', 'a') }), (text) => {
        const once = stripWhiteSpace(text)
        expect(stripWhiteSpace(once)).to.equal(once)
      }),
    )
  })

  it('leaves the white space inside strings and names alone', () => {
    expect(stripWhiteSpace('{ " a b " : " \\" c \\\\" }')).to.equal('{" a b ":" \\" c \\\\"}')
  })

  it('keeps the spelling of numbers and escapes', () => {
    const text = String.raw`[1.0,1e3,-0,12345678901234567890,"\u00e9\/\ud800"]`
    expect(stripWhiteSpace(` ${text.replaceAll(',', ' , ')}\n`)).to.equal(text)
  })

  it('takes only the white space that JSON knows', () => {
    expect(stripWhiteSpace('[1,\u00a02]')).to.equal('[1,\u00a02]')
  })
})

describe('memberText', () => {
  it('finds the value that JSON.parse finds, wherever it stands', () => {
    const name = fc.constantFrom('data', 'event', 'Data', 'dat', '', 'a"b', '\\')
    const members = fc.array(fc.tuple(name, fc.jsonValue(), fc.boolean()), { maxLength: 6 })
    fc.assert(
      fc.property(members, (list) => {
        const json = `{${list.map(([key, value, escape]) => `${nameText(key, escape)}:${JSON.stringify(value)}`).join(',')}}`
        const parsed = JSON.parse(json) as Record<string, unknown>
        const expected = Object.hasOwn(parsed, 'data') ? JSON.stringify(parsed['data']) : null
        expect(memberText(json, 'data')).to.equal(expected)
      }),
      { numRuns: 1_000 },
    )
  })

  it('takes the last of several members with the name, as JSON.parse does', () => {
    expect(memberText('{"data":1,"event":"x","data":{"a":[2]}}', 'data')).to.equal('{"a":[2]}')
  })

  it('knows a name that is written with escapes', () => {
    expect(memberText(String.raw`{"d\u0061ta":1.0}`, 'data')).to.equal('1.0')
  })

  it('is not misled by the name inside a value', () => {
    expect(memberText('{"event":"\\"data\\":1","x":{"data":2},"data":3}', 'data')).to.equal('3')
  })

  it('gives the text as it was written', () => {
    const data = String.raw`{"n":1.50,"s":"\u00e9\/","e":[]}`
    expect(memberText(`{"data":${data},"event":"x"}`, 'data')).to.equal(data)
  })

  it('finds nothing where there is nothing', () => {
    for (const json of ['{}', '[]', '1', '"data"', 'null'])
      expect(memberText(json, 'data'), json).to.equal(null)
  })
})

describe('nestingDepth', () => {
  it('is the depth of the value', () => {
    fc.assert(
      fc.property(spacedJson, ({ value, text }) => {
        expect(nestingDepth(text)).to.equal(depthOf(value))
      }),
    )
  })

  it('does not count brackets inside strings', () => {
    expect(nestingDepth(String.raw`["[[[\"[[", "{{{\\"]`)).to.equal(1)
  })

  it('counts brackets that are never closed', () => {
    expect(nestingDepth('['.repeat(50_000))).to.equal(50_000)
  })

  it('ends for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', '\\', '[', ']', '{', '}', 'a') }), (text) => {
        expect(nestingDepth(text)).to.be.at.most(text.length)
      }),
    )
  })
})

/** `json` with the given white space before, between and after its tokens. */
function spaced(json: string, spaces: readonly string[]): string {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^[\]{}:,"]+/g) ?? []
  return ['', ...tokens].map((token, index) => token + (spaces[index % spaces.length] ?? '')).join('')
}

function nameText(name: string, escape: boolean): string {
  if (!escape) return JSON.stringify(name)
  const escaped = name.replaceAll(/./g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `"${escaped}"`
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}
