import type { NotificationCounts } from '../../../src/domain/notification-rules.ts'
import type { Notice, SendOutcome } from '../../../src/incidents/notifications/mail-text.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { type Channels, sendDue } from '../../../src/incidents/notifications/send-due.ts'
import { type AddressedIncident, createExhaustedIncident, type People } from './addressed-incident.ts'
import { type TestDatabase, useDatabase } from '../database/database.ts'
import { unbounded } from '../deliveries/attempts.ts'
import { silentLogger } from '../silent-logger.ts'

export type Answer = SendOutcome & { gone?: boolean }

export const SENT: SendOutcome = { state: 'sent' }
export const REFUSED = { state: 'refused', error: 'busy' } satisfies SendOutcome
export const FAILED = { state: 'failed', error: 'no such mailbox' } satisfies SendOutcome
export const UNKNOWN = { state: 'unknown', error: 'the line broke' } satisfies SendOutcome

type SendOptions = { retry?: boolean; signal?: AbortSignal; channels?: Channels }

/** One incident, and channels that note what they are handed. Everything is new for each test but the database. */
export type Sending = {
  database: TestDatabase
  incident: AddressedIncident
  /** Recipients of what the channels were handed, in order, and what it said. */
  handed: string[]
  notices: Notice[]
  /** What the channels answer; by default they accept. */
  answer: (to: string) => Answer | Promise<Answer>
  /** An incident for these members, addressed to them. */
  addressed(people: People): Promise<void>
  send(options?: SendOptions): Promise<NotificationCounts>
  /** State by recipient. */
  states(): Promise<Record<string, string>>
  run(sql: string, ...parameters: unknown[]): Promise<unknown>
}

/** What the tests of one `describe` about sending share. */
export function useSending(): Sending {
  const channels: Channels = {
    email: { limiter: unbounded, send: (notice, { address }) => handOver(notice, address) },
    push: { limiter: unbounded, send: (notice, { id }) => handOver(notice, id) },
  }
  const metrics = createMetrics()
  const sending: Sending = {
    database: useDatabase(),
    incident: {} as AddressedIncident,
    handed: [],
    notices: [],
    answer: () => SENT,
    async addressed(people) {
      sending.incident = await createExhaustedIncident(sending.database.dataSource, people)
      await sending.incident.address()
    },
    send(options = {}) {
      const { retry = true, signal = new AbortController().signal } = options
      const { organisationId, incidentId } = sending.incident
      const { dataSource } = sending.database
      return sendDue(
        { dataSource, logger: silentLogger, metrics, channels: options.channels ?? channels },
        { organisationId, incidentId, retry },
        signal,
      )
    },
    async states() {
      const rows = await sending.incident.rows()
      return Object.fromEntries(rows.map(({ recipient, state }) => [recipient, state]))
    },
    run: (sql, ...parameters) => sending.database.dataSource.query(sql, parameters),
  }
  const handOver = async (notice: Notice, to: string): Promise<Answer> => {
    sending.handed.push(to)
    sending.notices.push(notice)
    return sending.answer(to)
  }
  beforeEach(() => {
    Object.assign(sending, { handed: [], notices: [], answer: () => SENT })
  })
  return sending
}

/** The state of `count` notifications of kind 2. */
export function counted(state: NotificationCounts[number]['state'], count: number): NotificationCounts {
  return [{ kind: 2, state, count }]
}

/** So many members that may change the settings: `member0@zon.example` … */
export function crowd(count: number): { email: string }[] {
  return Array.from({ length: count }, (_, index) => ({ email: `member${index}@zon.example` }))
}
