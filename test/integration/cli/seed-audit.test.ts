import { expect } from 'chai'
import { an, camping, KEY, seedOf, useSeededApi, withMember } from '../../helpers/cli/seed-files.ts'

describe('the audit trail of posthorn seed', () => {
  const suite = useSeededApi()
  const { database, seed } = suite

  type Entry = {
    action: string
    details: Record<string, unknown>
    memberId: string | null
    apiKeyId: string | null
  }
  const entries = () =>
    database.dataSource.query<Entry[]>(
      `SELECT action, details, member_id AS "memberId", api_key_id AS "apiKeyId" FROM audit_entry
        WHERE organisation_id = 'org_camping' ORDER BY id`,
    )
  /** What a piece of work adds to the trail. */
  const addedBy = async (work: Promise<unknown>): Promise<Entry[]> => {
    const before = (await entries()).length
    await work
    return (await entries()).slice(before)
  }

  it('records everything that it creates, and nothing when it is repeated', async () => {
    const organisation = without(camping, 'members')
    const member = without(an, 'apiKeys')
    const added = await addedBy(seed(seedOf(camping)))
    const [, , key] = added
    const id = key!.details['id']
    expect(added.map(({ action, details }) => [action, details])).to.deep.equal([
      ['organisation.created', { actor: 'seed', id: camping.id, before: null, after: organisation }],
      ['member.created', { actor: 'seed', id: an.id, before: null, after: member }],
      [
        'api_key.created',
        {
          ...{ actor: 'seed', id, memberId: an.id, name: 'ci' },
          ...{ before: null, after: { prefix: KEY.slice(0, 8) } },
        },
      ],
    ])
    expect(added.every(({ memberId, apiKeyId }) => memberId === null && apiKeyId === null)).to.equal(true)
    expect(await addedBy(seed(seedOf(camping)))).to.deep.equal([])
  })

  it('records what changes, before and after', async () => {
    await seed(seedOf(camping))
    const changed = {
      ...{ ...camping, timeZone: 'Europe/Paris' },
      members: [{ ...an, fullAccess: true, permissions: ['invoice:read'] }],
    }
    const added = await addedBy(seed(seedOf(changed)))
    expect(added.map(({ action, details }) => [action, details])).to.deep.equal([
      [
        'organisation.updated',
        {
          ...{ actor: 'seed', id: camping.id },
          ...{ before: { timeZone: 'Europe/Brussels' }, after: { timeZone: 'Europe/Paris' } },
        },
      ],
      [
        'member.updated',
        {
          ...{ actor: 'seed', id: an.id },
          before: { fullAccess: false, permissions: an.permissions },
          after: { fullAccess: true, permissions: ['invoice:read'] },
        },
      ],
    ])
    expect(await addedBy(seed(seedOf(changed)))).to.deep.equal([])
  })

  it('records a replaced key by its public prefix, and never a key or its hash', async () => {
    await seed(seedOf(camping))
    const key = 'another-value-0123456789-abcdefghij'
    const added = await addedBy(seed(withMember({ apiKeys: [{ name: 'ci', key }] })))
    expect(added.map(({ action, details }) => [action, details['before'], details['after']])).to.deep.equal([
      ['api_key.replaced', { prefix: KEY.slice(0, 8) }, { prefix: key.slice(0, 8) }],
    ])
    await addedBy(seed(withMember({ apiKeys: [{ name: 'made' }] })))
    const hashes = await database.dataSource.query<{ hash: string }[]>(
      `SELECT encode(hash, 'hex') AS hash FROM api_key`,
    )
    const trail = JSON.stringify(await entries())
    for (const secret of [KEY, key, ...hashes.map(({ hash }) => hash)]) expect(trail).to.not.include(secret)
  })
})

function without<T extends object, Field extends keyof T>(object: T, field: Field): Omit<T, Field> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== field)) as Omit<T, Field>
}
