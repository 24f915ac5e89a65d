import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'

/** Written down by hand from the tables 2.4, 3.2 and 6.3 of the specification. */
type Facts = {
  enumerations: { entity: string; field: string; values: string[]; isComplete: boolean }[]
  narrowed: { key: string; entity: string; field: string; values: string[] }[]
}

const { enumerations, narrowed } = JSON.parse(
  readFileSync(new URL('../../fixtures/payload-values.json', import.meta.url), 'utf8'),
) as Facts

/** The places of each entity in payloads: the event key, and the property. */
const PLACES: Record<string, readonly (readonly [key: string, property: string | null])[]> = {
  Customer: topLevel('customer', 'created updated deleted'),
  Invoice: [...topLevel('invoice', 'created updated deleted moved-to-customer'), ['invoice:paid', 'invoice']],
  Payment: [...topLevel('payment', 'created updated deleted'), ['invoice:paid', 'payment']],
  Controller: topLevel('controller', 'created updated deleted'),
  NfcTag: topLevel('nfc-tag', 'blocked presented unblocked updated'),
}

/** Keys whose shape the specification shows (6.3): there, open fields have a type. */
const SHOWN = ['customer:created', 'invoice:paid', 'nfc-tag:presented']

function topLevel(entity: string, actions: string) {
  return actions.split(' ').map((action) => [`${entity}:${action}`, null] as const)
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
        if (!isComplete && !SHOWN.includes(key)) {
          expect(schema, 'open, as the whole shape').to.equal(undefined)
          return
        }
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
