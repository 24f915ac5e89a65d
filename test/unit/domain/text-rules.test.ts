import { expect } from 'chai'
import fc from 'fast-check'
import {
  duplicateMembers,
  isInstant,
  memberText,
  nestingDepth,
  parseUrl,
  stripWhiteSpace,
} from '../../../src/domain/text-rules.ts'

/** A JSON text with random white space between its tokens, and its value. */
const spacedJson = fc
  .tuple(
    fc.jsonValue({ stringUnit: 'binary' }),
    fc.array(fc.constantFrom('', ' ', '\t', '\n', '\r', ' \r\n '), { minLength: 1, maxLength: 20 }),
  )
  .map(([value, spaces]) => ({ value, text: spaced(JSON.stringify(value), spaces) }))

describe('isInstant', () => {
  const ALLOWED = [
    '2026-05-04T09:02:11Z',
    '2024-02-29t23:59:59.123456789z',
    '0000-01-01T00:00:00+00:00',
    '9999-12-31T23:59:59.999+23:59',
  ]
  const REFUSED = [
    '9999-12-31T23:59:59-23:59',
    '0000-01-01T00:00:00+00:01',
    '0050-01-01 00:00:00Z',
    '2026-05-04\n09:02:11Z',
    '2026-05-04T09:02:11+0200',
    '2026-05-04T09:02:11+02',
    '2026-05-04T09:02:11+24:00',
    '2026-05-04T24:00:00Z',
    '2026-12-31T23:59:60Z',
    '2026-02-29T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-05-04T09:02Z',
    '2026-05-04T09:02:11',
    '2026-05-04',
  ]

  it('allows what RFC 3339 does, within the years 0 to 9999 in UTC', () => {
    expect(ALLOWED.filter(isInstant)).to.deep.equal(ALLOWED)
    expect(REFUSED.filter(isInstant)).to.deep.equal([])
  })
})

describe('stripWhiteSpace', () => {
  it('keeps the meaning of the text, and leaves no white space between tokens', () => {
    fc.assert(
      fc.property(spacedJson, ({ value, text }) => {
        expect(stripWhiteSpace(text)).to.equal(JSON.stringify(value))
      }),
      { numRuns: 500 },
    )
  })

  it('is idempotent', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('"', '\\', ' ', '{', '\n', 'a') }), (text) => {
        const once = stripWhiteSpace(text)
        expect(stripWhiteSpace(once)).to.equal(once)
      }),
    )
  })

  it('keeps the white space inside strings and names', () => {
    expect(stripWhiteSpace('{ " a b " : " \\" c \\\\" }')).to.equal('{" a b ":" \\" c \\\\"}')
  })

  it('keeps the spelling of numbers and escapes', () => {
    const text = String.raw`[1.0,1e3,-0,12345678901234567890,"\u00e9\/\ud800"]`
    expect(stripWhiteSpace(` ${text.replaceAll(',', ' , ')}\n`)).to.equal(text)
  })

  it('removes only the white space of JSON', () => {
    expect(stripWhiteSpace('[1,\u00a02]')).to.equal('[1,\u00a02]')
  })
})

describe('memberText', () => {
  it('finds the value that JSON.parse finds, at any position', () => {
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

  it('returns the last of several members with the name, as JSON.parse does', () => {
    expect(memberText('{"data":1,"event":"x","data":{"a":[2]}}', 'data')).to.equal('{"a":[2]}')
  })

  it('matches a name that is written with escapes', () => {
    expect(memberText(String.raw`{"d\u0061ta":1.0}`, 'data')).to.equal('1.0')
  })

  it('is not misled by the name inside a value', () => {
    expect(memberText('{"event":"\\"data\\":1","x":{"data":2},"data":3}', 'data')).to.equal('3')
  })

  it('returns the text as it was written', () => {
    const data = String.raw`{"n":1.50,"s":"\u00e9\/","e":[]}`
    expect(memberText(`{"data":${data},"event":"x"}`, 'data')).to.equal(data)
  })

  it('returns nothing for a missing member', () => {
    for (const json of ['{}', '[]', '1', '"data"', 'null'])
      expect(memberText(json, 'data'), json).to.equal(null)
  })
})

describe('nestingDepth', () => {
  it('returns the depth of the value', () => {
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

  it('terminates for any text', () => {
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

describe('duplicateMembers', () => {
  for (const [json, pointers] of [
    ['{}', []],
    ['{"a":1,"b":1}', []],
    ['{"a":{"a":[{"a":1},{"a":1}]}}', []],
    ['["a","a",{"a":"a"},{"a":"a"}]', []],
    ['{"a":1,"a":2}', ['/a']],
    ['{ "a" : 1 , "a"\n: 2, "a":3 }', ['/a']],
    ['{"a":1,"\\u0061":2}', ['/a']],
    ['{"x":[0,[1,{"b":{},"b":{}}],{"c":1,"c":2}]}', ['/x/1/1/b', '/x/2/c']],
    ['{"a/b~":1,"a/b~":1}', ['/a~1b~0']],
    ['{"__proto__":1,"__proto__":2,"":1,"":2}', ['/__proto__', '/']],
    ['{"a":"\\"a\\":1,","b":"}{"}', []],
    ['{"a":{"b":1},"c":{"b":1},"a":{"b":1,"b":2}}', ['/a', '/a/b']],
  ] as const) {
    it(`finds ${pointers.join(', ') || 'nothing'} in ${json}`, () => {
      JSON.parse(json)
      expect(duplicateMembers(json)).to.deep.equal(pointers)
    })
  }
})

describe('a parsed URL', () => {
  it('is the same after many calls, also with letters of Latin-1 in the host name', () => {
    for (let call = 0; call < 20_000; call++) {
      expect(parseUrl('https://bücher.example.com/')?.host).to.equal('xn--bcher-kva.example.com')
    }
  })

  it('is null for what is no URL', () => {
    for (const text of ['', 'example.com', 'https://', 'https://[::1', 'http://a b']) {
      expect(parseUrl(text), text).to.equal(null)
    }
  })
})
