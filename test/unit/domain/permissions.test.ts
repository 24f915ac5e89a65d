import { expect } from 'chai'
import {
  defaultPermissionFor,
  missingPermissions,
  permissionsForSubscription,
} from '../../../src/domain/permissions.ts'

const grants = (...permissions: string[]) => ({ fullAccess: false, permissions })
const fullAccess = { fullAccess: true, permissions: [] }

describe('defaultPermissionFor', () => {
  for (const [key, permission] of [
    ['bankAccountTransaction:imported', 'bankAccountTransaction:read'],
    ['controller:adoption:requested', 'controller:read'],
    ['nfc-tag:presented', 'nfc-tag:read'],
  ] as const) {
    it(`requires ${permission} to read ${key}`, () => {
      expect(defaultPermissionFor(key)).to.equal(permission)
    })
  }
})

describe('missingPermissions', () => {
  it('returns missing permissions in the requested order, each once', () => {
    expect(missingPermissions(grants('b:read'), ['c:read', 'b:read', 'a:read', 'c:read'])).to.deep.equal([
      'c:read',
      'a:read',
    ])
  })

  it('returns nothing when all permissions are held', () => {
    expect(missingPermissions(grants('a:read', 'b:read'), ['a:read'])).to.deep.equal([])
  })

  it('treats full access as every permission', () => {
    expect(missingPermissions(fullAccess, ['webhook:manage', 'fullAccess'])).to.deep.equal([])
  })

  it('distinguishes permissions with a common prefix', () => {
    expect(missingPermissions(grants('invoice:rea', 'invoice'), ['invoice:read'])).to.deep.equal([
      'invoice:read',
    ])
  })
})

describe('permissionsForSubscription', () => {
  it('returns the permission of every event key', () => {
    expect(permissionsForSubscription(['invoice:paid', 'call:created'], defaultPermissionFor)).to.deep.equal([
      'invoice:read',
      'call:read',
    ])
  })

  it('requires full access for *, which no list of permissions grants', () => {
    const required = permissionsForSubscription(['*'], defaultPermissionFor)
    expect(missingPermissions(grants('*', '*:read', 'invoice:read'), required)).to.have.lengthOf(1)
    expect(missingPermissions(fullAccess, required)).to.deep.equal([])
  })
})
