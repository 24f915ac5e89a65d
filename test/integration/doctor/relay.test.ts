import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { operatorKeysText, secretOf } from '../../helpers/api/operator.ts'
import { useDatabase } from '../../helpers/database/database.ts'
import { examine, settingsOf } from '../../helpers/doctor/doctored.ts'
import { createOutbox, type Outbox } from '../../helpers/relay/outbox.ts'

describe('posthorn doctor examines the outbox', () => {
  const database = useDatabase()
  let outbox: Outbox

  beforeEach(async () => {
    outbox = await createOutbox()
  })
  afterEach(() => outbox.drop())

  const settings = (env: Record<string, string> = {}) =>
    settingsOf(database.url, {
      RELAY_DATABASE_URL: outbox.url,
      RELAY_OPERATOR_KEY: secretOf('publisher'),
      POSTHORN_OPERATOR_KEYS: operatorKeysText(),
      ...env,
    })

  it('finds no problem in one that a relay empties, nor where there is none', async () => {
    await outbox.insert({ organisation_id: 'org_a' })
    const examined = await examine(settings())
    expect(examined.problems).to.deep.equal([])
    expect(examined.find('relay.outbox').seen).to.match(
      /^1 row\(s\) wait, the oldest for \d+ s, 0 for over a day$/,
    )
    expect(examined.find('relay.key').seen).to.include('publisher')
    const without = await examine(settings({ RELAY_DATABASE_URL: '' }))
    expect(() => without.find('relay.outbox')).to.throw('no relay.outbox')
  })

  it('names rows that wait too long, rows that were refused, and a key without the scope', async () => {
    await outbox.insert(
      { organisation_id: 'org_a', created_at: new Date(Date.now() - 25 * 3_600_000).toISOString() },
      { organisation_id: 'org_a' },
    )
    await outbox.dataSource.query(
      'UPDATE posthorn_outbox SET parked_at = now() WHERE id = (SELECT max(id) FROM posthorn_outbox)',
    )
    const { problems, find } = await examine(settings({ RELAY_OPERATOR_KEY: secretOf('manager') }))
    expect(problems).to.have.members([
      'error relay.rows_waiting',
      'warning relay.rows_parked',
      'error relay.key_refused',
    ])
    expect(find('relay.rows_waiting').seen).to.match(/^1 row\(s\) wait, .* 1 for over a day$/)
  })

  it('tells a database that cannot be reached from one without an outbox, or without the rights', async () => {
    const unreachable = settings({ RELAY_DATABASE_URL: 'postgres://u:Pw-in-clear@127.0.0.1:1/x' })
    const { problems, find } = await examine(unreachable)
    expect(problems).to.deep.equal(['error relay.unreachable'])
    expect(find('relay.unreachable').seen).to.not.include('Pw-in-clear')
    const role = `relay_${randomUUID().replaceAll('-', '')}`
    await outbox.dataSource.query(`CREATE ROLE ${role} LOGIN PASSWORD 'x'`)
    await outbox.dataSource.query(`GRANT SELECT ON posthorn_outbox TO ${role}`)
    const url = Object.assign(new URL(outbox.url), { username: role, password: 'x' }).href
    const withoutRights = await examine(settings({ RELAY_DATABASE_URL: url }))
    expect(withoutRights.problems).to.deep.equal(['error relay.rights_missing'])
    expect(withoutRights.find('relay.rights_missing').seen).to.equal('posthorn_outbox: UPDATE, DELETE')
    await outbox.dataSource.query(`DROP OWNED BY ${role}; DROP ROLE ${role}; DROP TABLE posthorn_outbox`)
    expect((await examine(settings())).problems).to.deep.equal(['error relay.outbox_missing'])
  })
})
