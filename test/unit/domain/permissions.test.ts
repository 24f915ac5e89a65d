import { expect } from 'chai'
import {
  missingPermissions,
  permissionForEventKey,
  permissionsForSubscription,
} from '../../../src/domain/permissions.ts'

const grants = (...permissions: string[]) => ({ fullAccess: false, permissions })
const fullAccess = { fullAccess: true, permissions: [] }

describe('permissionForEventKey', () => {
  for (const [key, permission] of [
    ['bankAccountTransaction:imported', 'bankAccountTransaction:read'],
    ['controller:adoption:requested', 'controller:read'],
    ['nfc-tag:presented', 'nfc-tag:read'],
  ] as const) {
    it(`asks ${permission} of a reader of ${key}`, () => {
      expect(permissionForEventKey(key)).to.equal(permission)
    })
  }
})

describe('missingPermissions', () => {
  it('names what is lacking, in the order it was asked for, each once', () => {
    expect(missingPermissions(grants('b:read'), ['c:read', 'b:read', 'a:read', 'c:read'])).to.deep.equal([
      'c:read',
      'a:read',
    ])
  })

  it('names nothing where everything is held', () => {
    expect(missingPermissions(grants('a:read', 'b:read'), ['a:read'])).to.deep.equal([])
  })

  it('takes full access for every permission', () => {
    expect(missingPermissions(fullAccess, ['webhook:manage', 'fullAccess'])).to.deep.equal([])
  })

  it('takes no permission for another that begins like it', () => {
    expect(missingPermissions(grants('invoice:rea', 'invoice'), ['invoice:read'])).to.deep.equal([
      'invoice:read',
    ])
  })
})

describe('permissionsForSubscription', () => {
  it('asks the permission of every event key', () => {
    expect(permissionsForSubscription(['invoice:paid', 'call:created'])).to.deep.equal([
      'invoice:read',
      'call:read',
    ])
  })

  it('asks full access for *, which no list of permissions gives', () => {
    const required = permissionsForSubscription(['*'])
    expect(missingPermissions(grants('*', '*:read', 'invoice:read'), required)).to.have.lengthOf(1)
    expect(missingPermissions(fullAccess, required)).to.deep.equal([])
  })
})
