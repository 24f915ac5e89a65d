import { expect } from 'chai'
import { bind, sql } from '../../../src/db/connection/db.ts'

describe('sql', () => {
  it('numbers named parameters in the order of their first use', () => {
    const statement = bind('SELECT :b, :a, :b FROM webhook WHERE id = :id', { a: 1, b: null, id: 'x' })
    expect(statement).to.deep.equal({
      text: 'SELECT $1, $2, $1 FROM webhook WHERE id = $3',
      values: [null, 1, 'x'],
    })
  })

  it('leaves casts, string literals, quoted names and JSON operators as they are', () => {
    const text = `SELECT '12:30'::text, 'it''s :a', details->>'b:c' AS "x:y" FROM t WHERE a = ANY(:ids::uuid[])`
    expect(bind(text, { ids: [] }).text).to.equal(text.replace(':ids', '$1'))
  })

  it('takes a name to its end, in whatever it ends', () => {
    const statement = bind('(:id, :idOther)\n:last', { id: 1, idOther: 2, last: 3 })
    expect(statement.text).to.equal('($1, $2)\n$3')
  })

  it('gives the same text each time', () => {
    const text = 'SELECT :a::int'
    expect(bind(text, { a: 1 }).text).to.equal(bind(text, { a: 2 }).text)
  })

  it('refuses a missing parameter, at compile time too', () => {
    // @ts-expect-error: `b` is missing
    expect(() => sql('SELECT :a, :b', { a: 1 })).to.throw('needs a value for :b')
  })

  it('refuses a misspelt parameter, at compile time too', () => {
    // @ts-expect-error: `organisationID` is not `organisationId`
    expect(() => sql('SELECT :organisationId::text', { organisationID: 1 })).to.throw(':organisationID')
  })

  it('refuses an undefined value', () => {
    expect(() => sql('SELECT :a', { a: undefined })).to.throw('needs a value for :a')
  })

  it('refuses an unused parameter', () => {
    expect(() => sql('SELECT :a', { a: 1, b: 2 })).to.throw('no parameter :b')
  })
})
