import type { DataSource, QueryRunner } from 'typeorm'
import { newId } from '../../../src/ids.ts'
import type { Dice } from '../../faults/play/dice.ts'
import { openTransaction } from '../database/database.ts'

/** An event of the organisation; `sequence` is its place in the order. */
export type HistoricEvent = {
  id: string
  key: string
  sequence: number
  state: 'open' | 'committed' | 'rolled back'
}

/** Publishes events and remembers them. */
export type EventHistory = {
  /** Events of the organisation, in the order in which they were begun. */
  readonly events: readonly HistoricEvent[]
  /** Does one random thing that changes what is published. */
  step(): Promise<void>
  /** Commits the transactions that are still open. */
  finish(): Promise<void>
}

const KEYS = ['customer:created', 'invoice:paid', 'call:created']

/** For members that may see little of what is published. */
const RARE_KEY = 'comment:created'

/** More than a look at the newest few events would find something visible behind. */
const BURST = 150

const MAX_OPEN = 2

/**
 * Builds a history that publishes for one organisation and for a stranger, one by one and in bursts, in transactions that
 * end after those of later events, or are rolled back.
 */
export function createEventHistory(
  dataSource: DataSource,
  dice: Dice,
  { organisationId, strangerId }: { organisationId: string; strangerId: string },
): EventHistory {
  const events: HistoricEvent[] = []
  const open: { runner: QueryRunner; event: HistoricEvent }[] = []

  async function insert(
    on: Pick<DataSource, 'query'>,
    [id, organisation, key]: [id: string, organisation: string, key: string],
  ): Promise<number> {
    const [row] = await on.query<{ sequence: string }[]>(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       VALUES ($1, $2, $3, '{}', now(), 't') RETURNING sequence`,
      [id, organisation, key],
    )
    return Number(row?.sequence)
  }

  /** The event is in the list before the statement is sent: a reader may have it before the publisher does. */
  async function publish(on: Pick<DataSource, 'query'>, key: string): Promise<HistoricEvent> {
    const event: HistoricEvent = { id: newId(), key, sequence: NaN, state: 'open' }
    events.push(event)
    event.sequence = await insert(on, [event.id, organisationId, key])
    return event
  }

  async function publishOne(key: string): Promise<void> {
    const event = await publish(dataSource, key)
    event.state = 'committed'
  }

  async function publishBurst(): Promise<void> {
    const key = dice.pick(KEYS)
    for (let count = 0; count < BURST; count++)
      events.push({ id: newId(), key, sequence: NaN, state: 'open' })
    const burst = events.slice(-BURST)
    const rows = await dataSource.query<{ id: string; sequence: string }[]>(
      `INSERT INTO event (id, organisation_id, key, body, emitted_at, trace_id)
       SELECT id, $1, $2, '{}', now(), 't' FROM unnest($3::uuid[]) id RETURNING id, sequence`,
      [organisationId, key, burst.map(({ id }) => id)],
    )
    const sequences = new Map(rows.map(({ id, sequence }) => [id, Number(sequence)]))
    for (const event of burst) Object.assign(event, { sequence: sequences.get(event.id), state: 'committed' })
  }

  async function begin(): Promise<void> {
    if (open.length === MAX_OPEN) return
    const runner = await openTransaction(dataSource)
    open.push({ runner, event: await publish(runner, dice.pick(KEYS)) })
  }

  async function end(isCommit: boolean): Promise<void> {
    const oldest = open.shift()
    if (oldest === undefined) return
    const { runner, event } = oldest
    if (isCommit) await runner.commitTransaction()
    else await runner.rollbackTransaction()
    event.state = isCommit ? 'committed' : 'rolled back'
    await runner.release()
  }

  return {
    events,
    step: () =>
      dice.weighted([
        [12, () => publishOne(dice.pick(KEYS))],
        [2, () => publishOne(RARE_KEY)],
        [3, () => insert(dataSource, [newId(), strangerId, dice.pick(KEYS)]).then(() => undefined)],
        [2, begin],
        [3, () => end(dice.chance(0.8))],
        [1, publishBurst],
      ])(),
    async finish() {
      while (open.length > 0) await end(true)
    },
  }
}
