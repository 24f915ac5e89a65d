import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in.ts'

/** Written down by hand from the tables 2.4, 3.2 and 6.3 of the specification. */
type Facts = {
  enumerations: { entity: string; field: string; values: string[]; isComplete: boolean }[]
  narrowed: { key: string; entity: string; field: string; values: string[] }[]
}

const { enumerations, narrowed } = JSON.parse(
  readFileSync(new URL('../../fixtures/payload-values.json', import.meta.url), 'utf8'),
) as Facts

/** The place of each entity in the payloads with a known shape: the event key, and the property. */
const PLACES: Record<string, readonly (readonly [key: string, property: string | null])[]> = {
  Customer: [['customer:created', null]],
  Invoice: [['invoice:paid', 'invoice']],
  Payment: [['invoice:paid', 'payment']],
  Controller: [
    ['controller:created', null],
    ['controller:updated', null],
    ['controller:deleted', null],
  ],
  NfcTag: [['nfc-tag:presented', null]],
}

type Schema = {
  type?: string
  enum?: string[]
  const?: string
  description?: string
  properties?: Record<string, Schema>
}

describe('the allowed values of payload fields', () => {
  for (const { entity, field, values, isComplete } of enumerations) {
    for (const [key, property] of PLACES[entity]!) {
      const allowed =
        narrowed.find((fact) => fact.key === key && fact.entity === entity && fact.field === field)?.values ??
        values

      it(`match the specification for ${entity} ${field} in ${key}`, () => {
        const schema = schemaAt(key, property, field)
        if (isComplete) expect(valuesOf(schema)).to.deep.equal(allowed)
        else expect(schema, 'open, since the values are not all listed').to.include({ type: 'string' })
        if (!isComplete) expect(valuesOf(schema)).to.equal(null)
        for (const value of values)
          if (!(valuesOf(schema) ?? []).includes(value))
            expect(schema?.description).to.include(`\`${value}\``)
      })
    }
  }

  it('are restricted nowhere else', () => {
    const known = enumerations.flatMap(({ entity, field }) =>
      PLACES[entity]!.map(([key, property]) => pathOf(key, property, field)),
    )
    const limited = builtInCatalogue.eventKeys.flatMap(({ key, schema }) =>
      limitedFields(key, schema as Schema | null),
    )
    expect(limited).to.not.be.empty
    expect(known).to.include.members(limited)
  })
})

function schemaAt(key: string, property: string | null, field: string): Schema | undefined {
  const schema = builtInCatalogue.find(key)?.schema as Schema | undefined
  const entity = property === null ? schema : schema?.properties?.[property]
  return entity?.properties?.[field]
}

function valuesOf(schema: Schema | undefined): string[] | null {
  return schema?.enum ?? (schema?.const === undefined ? null : [schema.const])
}

/** The paths of every field below `schema` that allows certain values only. */
function limitedFields(path: string, schema: Schema | null): string[] {
  return Object.entries(schema?.properties ?? {}).flatMap(([name, inner]) =>
    valuesOf(inner) === null ? limitedFields(`${path} ${name}`, inner) : [`${path} ${name}`],
  )
}

function pathOf(...parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null).join(' ')
}
