import { readdirSync } from 'node:fs'
import { expect } from 'chai'
import { readDocument, tableBelow } from '../../../helpers/documents/documents.ts'
import { DELIVERY_STATES, type DeliveryState } from '../../../../src/domain/delivery-state.ts'

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

/** Between which states a statement, or a row of the table of them, moves a delivery. */
type Transition = {
  from: DeliveryState[]
  to: DeliveryState[]
  /** Whether it may leave the state as it was. */
  keeps: boolean
}

const ENDED: readonly DeliveryState[] = ['completed', 'failed', 'stopped']
const LITERAL = `'(${DELIVERY_STATES.join('|')})'`

/**
 * Reads the transition of a statement of the protocol from its text: the states that its WHERE parts name, and the states
 * that its INSERT or the SET of its UPDATE gives to a delivery. A state that comes in as a parameter is not seen.
 */
function transitionOfSql(file: string): Transition {
  const text = file.replaceAll(/--.*$/gm, '')
  const inserted = clauseAfter(text, /\bINSERT INTO delivery\b/, /\b(?:FROM|VALUES)\b/)
  if (inserted !== null) return { from: [], to: inOrder(literalsIn(inserted)), keeps: false }
  const set = clauseAfter(text, /\bUPDATE delivery(?: d)?\s+SET\b/, /\b(?:FROM|WHERE|RETURNING)\b/)
  if (set === null) throw new Error('it neither inserts nor updates a delivery')
  const to = valuesIn(set)
  return {
    from: statesBefore(text),
    to: inOrder(to),
    keeps: to.length === 0 || /\bELSE d\.state\b/.test(set),
  }
}

/** Reads the transition of a row of the table: "any but `completed`", "`waiting`, or as it was". */
function transitionOfCells(from: string, to: string): Transition {
  const named = statesNamed(from)
  const but = from.startsWith('any but') ? named : []
  const before = from.startsWith('any') ? DELIVERY_STATES.filter((state) => !but.includes(state)) : named
  return { from: inOrder(before), to: inOrder(statesNamed(to)), keeps: to.includes('as it was') }
}

/** The states of which the WHERE parts let one through. */
function statesBefore(text: string): DeliveryState[] {
  const conditions = [...text.matchAll(/\bWHERE\b/g)]
    .map(({ index }) => upTo(text.slice(index + 'WHERE'.length), /\b(?:RETURNING|ORDER|FOR|UNION)\b/))
    .join('\n')
  const lists = [...conditions.matchAll(/\bstate (?:=|IN) (\([^)]*\)|'\w+')/g)].flatMap(([, list = '']) =>
    literalsIn(list),
  )
  // What an OR follows is refused under a condition only.
  const refused = [...conditions.matchAll(new RegExp(`\\bstate <> ${LITERAL}(?!\\s+OR)`, 'g'))].map(
    ([, state]) => state as DeliveryState,
  )
  const open = conditions.includes('completed_at IS NULL') ? ENDED : []
  const among = lists.length > 0 ? lists : DELIVERY_STATES.filter((state) => !open.includes(state))
  return inOrder(among.filter((state) => !refused.includes(state)))
}

/** The states that an expression may have as its value: those that are assigned, and those of the arms of a CASE. */
function valuesIn(text: string): DeliveryState[] {
  const value = new RegExp(`(?:\\b(?:THEN|ELSE)|(?<!\\.)\\bstate =)\\s+${LITERAL}`, 'g')
  return [...text.matchAll(value)].map(([, state]) => state as DeliveryState)
}

function literalsIn(text: string): DeliveryState[] {
  return [...text.matchAll(new RegExp(LITERAL, 'g'))].map(([, state]) => state as DeliveryState)
}

function statesNamed(cell: string): DeliveryState[] {
  return DELIVERY_STATES.filter((state) => cell.includes(`\`${state}\``))
}

function inOrder(states: readonly DeliveryState[]): DeliveryState[] {
  return DELIVERY_STATES.filter((state) => states.includes(state))
}

/** What is between two patterns, the second one outside of parentheses; null where the first is missing. */
function clauseAfter(text: string, start: RegExp, end: RegExp): string | null {
  const found = start.exec(text)
  return found === null ? null : upTo(text.slice(found.index + found[0].length), end)
}

/** The text up to a pattern outside of parentheses, or to the parenthesis that closes what is around it. */
function upTo(text: string, end: RegExp): string {
  let depth = 0
  for (const { 0: found, index } of text.matchAll(new RegExp(`[()]|${end.source}`, 'g'))) {
    if (found === '(') depth += 1
    else if (found === ')') depth -= 1
    if (depth < 0 || (depth === 0 && found !== ')')) return text.slice(0, index)
  }
  return text
}
