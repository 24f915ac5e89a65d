import { expect } from 'chai'
import { defaultCacheDir } from '../../../src/dev/provision.ts'
import { lintMigrations } from '../../../src/dev/lint-migrations.ts'

const ALLOW_LOCK = `SET LOCAL lock_timeout = '2s'`

/** What each refused statement is refused for. */
const REFUSED: [rule: string, statement: string, isInTransaction?: boolean][] = [
  ['require-concurrent-index-creation', 'CREATE INDEX event_key_idx ON event (key)'],
  ['require-concurrent-index-deletion', 'DROP INDEX event_trace_idx'],
  ['ban-concurrent-index-creation-in-transaction', 'CREATE INDEX CONCURRENTLY e_idx ON event (key)'],
  ['prefer-robust-stmts', 'CREATE INDEX CONCURRENTLY e_idx ON event (key)', false],
  ['adding-field-with-default', 'ALTER TABLE event ADD COLUMN token uuid DEFAULT gen_random_uuid()'],
  ['adding-required-field', 'ALTER TABLE event ADD COLUMN token uuid NOT NULL'],
  ['changing-column-type', 'ALTER TABLE event ALTER COLUMN key TYPE varchar(80)'],
  ['constraint-missing-not-valid', `ALTER TABLE event ADD CONSTRAINT key_check CHECK (key <> '')`],
  [
    'adding-foreign-key-constraint',
    'ALTER TABLE event ADD CONSTRAINT source_fk FOREIGN KEY (source) REFERENCES source (id)',
  ],
  ['disallowed-unique-constraint', 'ALTER TABLE event ADD CONSTRAINT key_unique UNIQUE (key)'],
  ['adding-not-nullable-field', 'ALTER TABLE event ALTER COLUMN key SET NOT NULL'],
  ['ban-drop-column', 'ALTER TABLE event DROP COLUMN key'],
  ['ban-drop-not-null', 'ALTER TABLE event ALTER COLUMN key DROP NOT NULL'],
  ['renaming-column', 'ALTER TABLE event RENAME COLUMN key TO event_key'],
  ['renaming-table', 'ALTER TABLE event RENAME TO events'],
  ['ban-drop-table', 'DROP TABLE event'],
]

const ACCEPTED: [title: string, statements: string[], isInTransaction?: boolean][] = [
  [
    'an index that is created concurrently',
    ['CREATE INDEX CONCURRENTLY IF NOT EXISTS e ON event (key)'],
    false,
  ],
  [
    'a column with a constant default',
    ['ALTER TABLE event ADD COLUMN is_new boolean NOT NULL DEFAULT false'],
  ],
  [
    'a constraint that leaves the rows from before unchecked',
    ['ALTER TABLE event ADD CONSTRAINT c CHECK (n > 0) NOT VALID'],
  ],
  ['the check of those rows', ['ALTER TABLE event VALIDATE CONSTRAINT c']],
  [
    'a new table with its index',
    ['CREATE TABLE note (id uuid PRIMARY KEY, at timestamptz)', 'CREATE INDEX note_idx ON note (at)'],
  ],
  ['a dropped column with a reason', ['-- squawk-ignore ban-drop-column\nALTER TABLE event DROP COLUMN key']],
]

describe('the linter of migrations', () => {
  const lint = (statements: string[], isInTransaction = true): Promise<string[]> => {
    const limit = isInTransaction ? ALLOW_LOCK : `SET lock_timeout = '2s'`
    const migration = { name: 'Example', statements: [limit, ...statements], isInTransaction }
    return lintMigrations([migration], defaultCacheDir(process.env))
  }

  for (const [rule, statement, isInTransaction] of REFUSED)
    it(`refuses ${statement}${isInTransaction === false ? ' outside of a transaction' : ''}`, async () => {
      const findings = await lint([statement], isInTransaction)
      expect(findings.join('\n')).to.match(new RegExp(`^Example\\.sql:\\d+:\\d+: warning: ${rule} `, 'm'))
    })

  for (const [title, statements, isInTransaction] of ACCEPTED)
    it(`accepts ${title}`, async () => {
      expect(await lint(statements, isInTransaction)).to.deep.equal([])
    })

  it('refuses a lock without a time limit', async () => {
    const statements = ['ALTER TABLE event ADD COLUMN is_new boolean']
    const findings = await lintMigrations(
      [{ name: 'Example', statements, isInTransaction: true }],
      defaultCacheDir(process.env),
    )
    expect(findings).to.have.lengthOf(1)
    expect(findings[0]).to.include('require-lock-timeout')
  })
})
