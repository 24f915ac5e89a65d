import { expect } from 'chai'
import { createTestApi, type TestApi } from '../../helpers/api/api.ts'
import { createMember } from '../../helpers/database/factories.ts'
import { useDatabase } from '../../helpers/database/database.ts'

type Entry = {
  key: string
  meaning: string
  permission: string
  subscribable: boolean
  schema: object | null
  example: object
}

describe('GET /api/event-keys', () => {
  const database = useDatabase()
  let api: TestApi
  let entries: Entry[]

  before(async () => {
    api = await createTestApi(database.dataSource)
    const { apiKey } = await createMember(database.dataSource, { permissions: [] })
    const answer = await api.call('GET', '/api/event-keys', { apiKey })
    expect(answer.status).to.equal(200)
    entries = (answer.json as { data: Entry[] }).data
  })
  after(() => api.close())

  it('answers any key, even of a member without permissions, and no request without a key', async () => {
    expect((await api.call('GET', '/api/event-keys')).status).to.equal(401)
    expect(entries).to.not.be.empty
  })

  it('lists the 90 keys that can be subscribed to and the one that cannot', () => {
    expect(entries.filter(({ subscribable }) => subscribable)).to.have.lengthOf(90)
    expect(entries.filter(({ subscribable }) => !subscribable).map(({ key }) => key)).to.deep.equal([
      'organizationSettings:updated',
    ])
  })

  it('shows the meaning, the permission and an example of each key', () => {
    for (const entry of entries) {
      expect(Object.keys(entry), entry.key).to.have.members([
        'key',
        'meaning',
        'permission',
        'subscribable',
        'schema',
        'example',
      ])
      expect(entry.meaning, entry.key).to.match(/\S/)
      expect(entry.permission, entry.key).to.equal(`${entry.key.split(':')[0] ?? ''}:read`)
      expect(entry.example, entry.key).to.be.an('object')
    }
  })

  it('shows the schema of the payloads whose shape is known', () => {
    const shaped = entries.filter(({ schema }) => schema !== null).map(({ key }) => key)
    expect(shaped).to.include.members([
      'invoice:paid',
      'nfc-tag:presented',
      'controller:adoption:requested',
      'controller:created',
      'customer:created',
      'organizationSettings:updated',
    ])
  })

  it('shows examples that can all be published', async () => {
    const { apiKey, organisationId } = await createMember(database.dataSource)
    for (const { key, example } of entries) {
      const answer = await api.call('POST', `/api/orgs/${organisationId}/events`, {
        apiKey,
        body: { event: key, data: example },
      })
      expect(answer.status, `${key} ${answer.text}`).to.equal(202)
    }
  })
})
