import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { builtInCatalogue } from '../../../src/catalogue/built-in-catalogue.ts'

type Fact = { key: string; meaning: string }

const facts = JSON.parse(
  readFileSync(new URL('../../fixtures/event-keys.json', import.meta.url), 'utf8'),
) as Fact[]

const { eventKeys, find, isSubscribable } = builtInCatalogue

describe('the event catalogue', () => {
  it('offers exactly the 90 keys of the specification, in its order and words', () => {
    const offered = eventKeys.filter((entry) => entry.subscribable)

    expect(facts).to.have.length(90)
    expect(offered.map(({ key, meaning }) => ({ key, meaning }))).to.deep.equal(facts)
  })

  it('lets organizationSettings:updated be published but not subscribed to', () => {
    const others = eventKeys.filter((entry) => !entry.subscribable)

    expect(others.map((entry) => entry.key)).to.deep.equal(['organizationSettings:updated'])
    expect(find('organizationSettings:updated')).to.not.equal(undefined)
    expect(isSubscribable('organizationSettings:updated')).to.equal(false)
  })

  it('requires the read permission of the entity that each key begins with', () => {
    for (const { key, permission } of eventKeys) {
      expect(permission, key).to.equal(`${key.slice(0, key.indexOf(':'))}:read`)
    }
    expect(find('bankAccountTransaction:imported')?.permission).to.equal('bankAccountTransaction:read')
    expect(find('controller:adoption:requested')?.permission).to.equal('controller:read')
  })

  it('has a payload schema for exactly the keys with a known shape, or of an entity with enumerations', () => {
    const shaped = eventKeys.filter((entry) => entry.schema !== null).map(({ key }) => key)
    const ofEntities = facts
      .map(({ key }) => key)
      .filter((key) => /^(customer|invoice|payment|controller|nfc-tag):[^:]+$/.test(key))

    expect(ofEntities).to.have.length(18)
    expect(shaped).to.have.members([
      ...ofEntities,
      'controller:adoption:requested',
      'organizationSettings:updated',
    ])
  })

  for (const key of facts.map((fact) => fact.key)) {
    it(`finds ${key}, publishable and subscribable`, () => {
      expect(find(key)?.key).to.equal(key)
      expect(isSubscribable(key)).to.equal(true)
    })
  }

  for (const key of ['*', '', 'invoice', 'Invoice:paid', 'invoice:paid ', 'webhook:test', 'constructor']) {
    it(`finds nothing for ${JSON.stringify(key)}`, () => {
      expect(find(key)).to.equal(undefined)
      expect(isSubscribable(key)).to.equal(false)
    })
  }
})
