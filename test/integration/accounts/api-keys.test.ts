import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import { findCaller } from '../../../src/db/queries/api-keys.ts'
import { ProblemError } from '../../../src/problem-error.ts'
import { createCallerLookup } from '../../../src/accounts/caller-lookup.ts'
import { authenticateApiKey } from '../../../src/http/auth/authenticate.ts'
import { createMember, type TestMember } from '../../helpers/database/factories.ts'
import { recording } from '../../helpers/database/database.ts'
import { sendBytes, sendRaw } from '../../helpers/api/raw-request.ts'
import { useApi } from '../../helpers/api/api.ts'

/** What a caller may send for a key that is refused, and as so many headers. */
type Refused = { title: string; headers: (keys: Keys) => string[] }
type Keys = { valid: string; other: string; revoked: string; expired: string; removed: string }

const REFUSED: Refused[] = [
  { title: 'no key', headers: () => [] },
  { title: 'an empty key', headers: () => [''] },
  { title: 'a blank key', headers: () => ['  '] },
  { title: 'a key too short to be one', headers: () => ['phk_short'] },
  { title: 'a key too long to be one', headers: () => ['k'.repeat(201)] },
  { title: 'a key with a space', headers: ({ valid }) => [`${valid} x`] },
  { title: 'an unknown key', headers: () => [`phk_${'x'.repeat(43)}`] },
  { title: 'a valid key but for its last character', headers: ({ valid }) => [`${valid.slice(0, -1)}~`] },
  { title: 'a valid key in other case', headers: ({ valid }) => [valid.toUpperCase()] },
  { title: 'the digest of a key', headers: () => ['0'.repeat(64)] },
  { title: 'a revoked key', headers: ({ revoked }) => [revoked] },
  { title: 'an expired key', headers: ({ expired }) => [expired] },
  { title: 'a key of a member who is gone', headers: ({ removed }) => [removed] },
  { title: 'the same valid key twice', headers: ({ valid }) => [valid, valid] },
  { title: 'two valid keys', headers: ({ valid, other }) => [valid, other] },
  { title: 'a valid key and an empty one', headers: ({ valid }) => [valid, ''] },
  { title: 'an empty key and a valid one', headers: ({ valid }) => ['', valid] },
  { title: 'two valid keys in one header', headers: ({ valid, other }) => [`${valid},${other}`] },
]

describe('API keys', () => {
  const suite = useApi()
  const keys = {} as Keys
  let member: TestMember

  const sql = (statement: string, ...parameters: unknown[]) =>
    suite.database.dataSource.query<Record<string, Date | null>[]>(statement, parameters)
  const change = (of: TestMember, set: string) =>
    sql(`UPDATE api_key SET ${set} WHERE organisation_id = $1 AND member_id = $2`, ...idsOf(of))
  const path = () => `/api/orgs/${member.organisationId}/webhooks`
  const statusFor = async (apiKey: string) => (await suite.api.call('GET', path(), { apiKey })).status

  before(async () => {
    const { dataSource } = suite.database
    member = await createMember(dataSource)
    const more = () => createMember(dataSource, { organisationId: member.organisationId })
    const [other, revoked, expired, removed] = [await more(), await more(), await more(), await more()]
    await change(revoked, 'revoked_at = now()')
    await change(expired, `expires_at = now() - interval '1 millisecond'`)
    await sql('DELETE FROM member WHERE organisation_id = $1 AND id = $2', ...idsOf(removed))
    keys.valid = member.apiKey
    keys.other = other.apiKey
    keys.revoked = revoked.apiKey
    keys.expired = expired.apiKey
    keys.removed = removed.apiKey
  })

  it('admit a valid key, with or without surrounding space', async () => {
    expect(await statusFor(keys.valid)).to.equal(200)
    expect(await statusFor(` ${keys.valid}\t`)).to.equal(200)
  })

  describe('that are refused', () => {
    const answers = new Set<string>()

    for (const { title, headers } of REFUSED) {
      it(`answer 401 to ${title}`, async () => {
        const answer = await sendRaw(suite.api.url, {
          method: 'GET',
          path: path(),
          headers: { 'x-api-key': headers(keys) },
        })
        expect(answer.status).to.equal(401)
        const { 'x-request-id': id, date, ...rest } = answer.headers
        expect([id, date]).to.not.include(undefined)
        answers.add(JSON.stringify([rest, answer.text]))
      })
    }

    it('answer 401 to a header that came twice in different spellings', async () => {
      const lines = [
        `GET ${path()} HTTP/1.1`,
        'Host: x',
        `X-Api-Key: ${keys.valid}`,
        `x-api-key: ${keys.valid}`,
      ]
      const answer = await sendBytes(suite.api.url, `${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`)
      expect(answer).to.match(/^HTTP\/1\.1 401 /)
    })

    it('get the same headers and the same bytes for every reason', () => {
      expect([...answers]).to.have.length(1)
    })

    it('are looked up by the same single statement for every reason, also what cannot be a key', async () => {
      const made = new Set<string>()
      for (const { headers } of REFUSED) {
        const statements: string[] = []
        await refuse(recording(suite.database.dataSource, statements), headers(keys).join(', '))
        made.add(JSON.stringify(statements))
      }
      expect([...made]).to.have.length(1)
      expect(JSON.parse([...made][0] ?? '')).to.have.length(1)
    })

    it('are not recorded as used', async () => {
      for (const key of [keys.revoked, keys.expired])
        expect(await findCaller(suite.database.dataSource, key)).to.equal(null)
      const used = await sql(
        'SELECT last_used_at FROM api_key WHERE revoked_at IS NOT NULL OR expires_at < now()',
      )
      expect(used.map((row) => row['last_used_at'])).to.deep.equal([null, null])
    })
  })

  it('are admitted until the instant at which they expire, with their last use recorded', async () => {
    const own = await createMember(suite.database.dataSource, { organisationId: member.organisationId })
    await change(own, `expires_at = now() + interval '1 hour'`)
    expect(await statusFor(own.apiKey)).to.equal(200)
    const [row] = await sql('SELECT last_used_at FROM api_key WHERE member_id = $1', own.memberId)
    expect(row!['last_used_at']).to.be.instanceOf(Date)
  })

  it('are stored as a digest that no other key has', async () => {
    const [index] = await sql(
      `SELECT indexdef FROM pg_indexes WHERE tablename = 'api_key' AND indexdef LIKE '%(hash)'`,
    )
    expect(index!['indexdef']).to.match(/^CREATE UNIQUE INDEX/)
    const [row] = await sql(`SELECT count(*) FROM api_key WHERE hash = sha256($1::bytea)`, keys.valid)
    expect(Number(row!['count'])).to.equal(1)
  })

  it('are found by their member in an index, the revoked ones too', async () => {
    const found = await sql(
      `SELECT FROM pg_indexes WHERE tablename = 'api_key' AND indexdef LIKE '%(organisation_id, member_id)'`,
    )
    expect(found).to.have.length(1)
  })
})

function idsOf({ organisationId, memberId }: TestMember): [string, string] {
  return [organisationId, memberId]
}

async function refuse(dataSource: DataSource, header: string): Promise<void> {
  const refusal = await authenticateApiKey(createCallerLookup(dataSource, 0.001), header).catch(
    (error: unknown) => error,
  )
  expect(refusal).to.be.instanceOf(ProblemError)
}
