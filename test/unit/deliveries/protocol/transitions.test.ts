import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import { readDocument, tableBelow } from '../../../helpers/documents/documents.ts'
import { transitionOfCells, transitionOfSql } from '../../../helpers/documents/transitions.ts'

const FOLDER = 'src/deliveries/protocol/'
/** What the schedule gives to the record of a failure, besides what its text has. */
const GIVEN = { 'record-failure': ['failed'] } as Record<string, string[]>

const statements = readdirSync(new URL(`../../../../${FOLDER}`, import.meta.url))
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.slice(0, -'.sql'.length))
const rows = tableBelow(readDocument('docs/architecture.md'), '## The delivery protocol').map(
  ([name = '', from = '', to = '']) => ({ name: name.replaceAll('`', ''), from, to }),
)

describe('the table of the delivery protocol in docs/architecture.md', () => {
  it('has a row for each statement, and no other', () => {
    expect(rows.map(({ name }) => name)).to.have.members(statements)
  })

  for (const { name, from, to } of rows)
    it(`says from and to which states ${name} moves a delivery`, () => {
      const inSql = transitionOfSql(readDocument(`${FOLDER}${name}.sql`))
      const inTable = transitionOfCells(from, to)
      expect(inTable.from).to.deep.equal(inSql.from)
      expect(inTable.keeps).to.equal(inSql.keeps)
      expect(inTable.to).to.have.members([...inSql.to, ...(GIVEN[name] ?? [])])
    })
})

describe('reading the transition of a statement', () => {
  it('takes states from what is assigned and what is asked for, not from other comparisons', () => {
    const text = `
      UPDATE delivery d
         SET sweep_at = CASE WHEN d.state = 'failed' THEN now() END,
             state = 'stopped', stop_reason = (SELECT 'completed' FROM webhook w WHERE w.id = d.webhook_id)
       WHERE d.id = :id AND (d.state = 'pending' OR d.state IN ('waiting', 'failed'))
      RETURNING d.id`
    expect(transitionOfSql(text)).to.deep.equal({
      from: ['pending', 'waiting', 'failed'],
      to: ['stopped'],
      keeps: false,
    })
  })

  it('sees each arm of a CASE, and the one that leaves the state as it was', () => {
    const text = `
      UPDATE delivery d
         SET (state, sweep_at) = (SELECT CASE WHEN is_late THEN 'waiting' WHEN is_lost THEN 'failed' ELSE d.state END, NULL
                                    FROM (SELECT true AS is_late) late)
       WHERE d.completed_at IS NULL`
    expect(transitionOfSql(text)).to.deep.equal({
      from: ['pending', 'in_progress', 'waiting'],
      to: ['waiting', 'failed'],
      keeps: true,
    })
  })

  it('takes every state but those that are refused', () => {
    const text = `UPDATE delivery d SET sweep_at = now() WHERE d.state <> 'completed' AND (d.state <> 'stopped' OR d.attempts > 0)`
    const { from, keeps } = transitionOfSql(text)
    expect(from).to.deep.equal(['pending', 'in_progress', 'waiting', 'failed', 'stopped'])
    expect(keeps).to.equal(true)
  })
})
