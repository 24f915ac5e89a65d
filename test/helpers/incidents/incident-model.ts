import { expect } from 'chai'
import type { DataSource } from 'typeorm'
import type { OverviewRow } from '../../../src/db/queries/overview.ts'
import type { AttemptOutcome } from '../../../src/domain/attempt-outcome.ts'
import type { DeliveryState } from '../../../src/domain/delivery-state.ts'
import type { NotificationState } from '../../../src/domain/notification-rules.ts'
import type { SendOutcome } from '../../../src/incidents/notifications/mail-text.ts'
import { NOTIFY_AFTER_MS, type VirtualClock } from './incident-temporal.ts'
import type { MadeAttempt, Recipient } from './incident-stage.ts'

type Kind = 1 | 2

export type DeliveryFacts = { id: string; state: DeliveryState; attempts: number; isTest: boolean }

type IncidentFacts = {
  id: string
  openedAtMs: number
  closed: boolean
  exhausted: boolean
  /** Which notifications were addressed. */
  addressed: Record<Kind, boolean>
}

type Key = { incidentId: string; kind: Kind; channel: 'email' | 'push'; recipient: string }

type NotificationFacts = Key & { state: NotificationState; error: string | null }

/** The rows of one webhook. */
export type Facts = {
  live: boolean
  deleted: boolean
  deliveries: DeliveryFacts[]
  incidents: IncidentFacts[]
  notifications: NotificationFacts[]
}

/** A message that a channel was handed, and what it answered. */
type Message = Key & { answer: SendOutcome['state'] }

/** Rows are read to the millisecond, a little after what they record. */
const TOLERANCE_MS = 1_000

/** What must be true of a webhook's incidents and notifications, whatever happens to it. */
export function createIncidentModel(read: () => Promise<Facts>, clock: VirtualClock) {
  let attempts: MadeAttempt[] = []
  let before: Facts = { live: true, deleted: false, deliveries: [], incidents: [], notifications: [] }
  let hasExhausted = false
  const exhausted = new Set<string>()
  const tests = new Set<string>()
  let event: 'nothing' | 'resolution' | 'failure' = 'nothing'
  const resumedAtMs = new Map<string, number>()
  const messages: Message[] = []
  const barred = new Set<string>()

  const messagesOf = (key: Key): Message[] => messages.filter((message) => isSame(message, key))

  /**
   * For how long every attempt has failed, in the order in which they began; 0 when the latest succeeded. What was
   * before the webhook was switched on again does not count.
   */
  function failingForMs({ id, openedAtMs }: IncidentFacts): number {
    const begun = attempts
      .filter(({ beganAtMs }) => beganAtMs > (resumedAtMs.get(id) ?? -Infinity))
      .sort((one, other) => one.beganAtMs - other.beganAtMs)
    const first = begun[begun.findLastIndex(({ succeeded }) => succeeded) + 1]
    if (first === undefined) return 0
    return clock.now() - Math.max(first.endedAtMs, openedAtMs + clock.aheadMs)
  }

  /** What the event since the last check may do to the incident, and nothing else does. */
  function checkIncidents({ deleted, deliveries, incidents }: Facts): void {
    const open = incidents.filter(({ closed }) => !closed).map(({ id }) => id)
    const openBefore = before.incidents.filter(({ closed }) => !closed).map(({ id }) => id)
    const unresolved = deliveries.filter(isUnresolved)
    const said = `open incidents after ${event}, with ${unresolved.length} unresolved deliveries`
    if (deleted || (event === 'resolution' && unresolved.length === 0)) expect(open, said).to.deep.equal([])
    else if (event === 'failure' && openBefore.length === 0) expect(open, said).to.have.length(1)
    else expect(open, said).to.deep.equal(openBefore)
    for (const { id, closed } of before.incidents)
      if (closed)
        expect(incidents.find((incident) => incident.id === id)?.closed, 'stays closed').to.equal(true)
    event = 'nothing'
  }

  /** A delivery fails permanently after ten attempts only, and a test event has one. */
  function checkDeliveries({ deliveries }: Facts): void {
    for (const { state, attempts: made, isTest } of deliveries) {
      if (state === 'failed') expect(made, 'attempts of a permanently failed delivery').to.be.at.least(10)
      if (isTest)
        expect(state, 'a test event').to.be.oneOf(['pending', 'in_progress', 'completed', 'stopped'])
      if (isTest) expect(made, 'attempts of a test event').to.be.at.most(1)
    }
  }

  /** A page shows "healthy" where no incident is open and the latest attempt did not fail. */
  function checkOverview({ deleted, incidents }: Facts, overview: OverviewRow | undefined): void {
    expect(overview === undefined, 'is listed').to.equal(deleted)
    if (overview === undefined) return
    const open = incidents.find(({ closed }) => !closed)
    expect(overview.openIncident?.id, 'open incident').to.equal(open?.id)
    const latest = attempts.reduce<MadeAttempt | null>(
      (last, made) => (last === null || made.beganAtMs > last.beganAtMs ? made : last),
      null,
    )
    const isHealthy = overview.openIncident === null && overview.latestAttempt?.outcome !== 'failed'
    if (latest?.succeeded === false) expect(isHealthy, 'healthy after a failed attempt').to.equal(false)
    if (latest !== null)
      expect(overview.latestAttempt?.outcome).to.equal(latest.succeeded ? 'succeeded' : 'failed')
  }

  function checkExhaustion({ incidents }: Facts): void {
    if (hasExhausted) exhausted.add(incidents.find(({ closed }) => !closed)!.id)
    hasExhausted = false
    for (const incident of incidents)
      expect(incident.exhausted, 'exhausted').to.equal(exhausted.has(incident.id))
  }

  function checkAddressing({ live, incidents, notifications }: Facts, entitled: Recipient[]): void {
    for (const incident of incidents) {
      const known = before.incidents.find(({ id }) => id === incident.id)
      for (const kind of [1, 2] as const) {
        const to = notifications.filter((row) => row.incidentId === incident.id && row.kind === kind)
        const earlier = before.notifications.filter(
          (row) => row.incidentId === incident.id && row.kind === kind,
        )
        const isNew = incident.addressed[kind] && known?.addressed[kind] !== true
        if (!isNew) {
          expect(to, 'addressed once').to.have.length(earlier.length)
          continue
        }
        expect(live && !incident.closed, 'there is something to notify of').to.equal(true)
        if (kind === 1)
          expect(failingForMs(incident), 'failing for').to.be.at.least(NOTIFY_AFTER_MS - TOLERANCE_MS)
        else expect(incident.exhausted, 'exhausted').to.equal(true)
        expect(to.map(({ recipient }) => recipient)).to.have.members(
          entitled.map(({ recipient }) => recipient),
        )
      }
    }
  }

  /** Why each notification may stand as it does. `isDeath`: a worker died since the last check. */
  function checkNotifications(now: Facts, isDeath: boolean): void {
    for (const row of now.notifications) {
      const was = before.notifications.find((one) => isSame(one, row))?.state ?? 'pending'
      if (['sent', 'failed', 'unknown'].includes(was)) {
        expect(row.state, 'what is settled').to.equal(was)
        continue
      }
      const answer = messagesOf(row).at(-1)?.answer ?? 'none'
      const isOver = now.deleted || now.incidents.some(({ id, closed }) => id === row.incidentId && closed)
      const said = `${row.state} after ${answer} (${row.error})`
      switch (row.state) {
        case 'sent':
          expect(answer, said).to.equal('sent')
          break
        case 'failed':
          if (answer === 'failed') break
          expect(isOver || barred.has(row.recipient), said).to.equal(true)
          expect(answer, said).to.be.oneOf(['none', 'refused'])
          break
        case 'unknown':
          expect(answer === 'unknown' || was === 'sending', said).to.equal(true)
          break
        case 'sending':
          expect(isDeath || was === 'sending', said).to.equal(true)
          break
        case 'pending':
          expect(answer, said).to.be.oneOf(['none', 'refused'])
      }
    }
  }

  return {
    onAttempt: (made: MadeAttempt, outcome: AttemptOutcome): void => {
      if (tests.has(made.deliveryId)) return
      attempts.push(made)
      if (outcome.state === 'completed') event = 'resolution'
      if (outcome.state === 'waiting' || outcome.state === 'failed') event = 'failure'
      hasExhausted ||= outcome.state === 'failed'
    },
    /** A user discarded at least one delivery. */
    onDiscarded: () => void (event = 'resolution'),
    /** This delivery is a test event. */
    onTest: (deliveryId: string) => void tests.add(deliveryId),
    /** The webhook is switched on again. */
    onResumed(): void {
      for (const { id, closed } of before.incidents) if (!closed) resumedAtMs.set(id, clock.now())
    },
    /** Recipients that lost the permission. */
    barred,

    /** A message is handed over, and `answer` will be returned. */
    async onMessage(key: Key, answer: Message['answer']): Promise<void> {
      const earlier = messagesOf(key)
      messages.push({ ...key, answer })
      const { live, incidents } = await read()
      const incident = incidents.find(({ id }) => id === key.incidentId)
      expect(
        earlier.filter((message) => message.answer !== 'refused'),
        'messages before',
      ).to.deep.equal([])
      expect(incident?.closed, 'closed').to.equal(false)
      expect(live, 'live').to.equal(true)
      expect(barred.has(key.recipient), `${key.recipient} has lost the permission`).to.equal(false)
    },

    /** To be called after everything that happens. */
    async check(recipients: readonly Recipient[], isDeath: boolean, overview?: OverviewRow): Promise<Facts> {
      const now = await read()
      const kept = new Set(now.deliveries.map(({ id }) => id))
      attempts = attempts.filter(({ deliveryId }) => kept.has(deliveryId))
      checkIncidents(now)
      checkDeliveries(now)
      checkOverview(now, overview)
      checkExhaustion(now)
      checkAddressing(
        now,
        recipients.filter(({ recipient }) => !barred.has(recipient)),
      )
      checkNotifications(now, isDeath)
      before = now
      return now
    },

    /** To be called when nothing was in the way of the workflows for long enough. */
    checkSettled({ live, incidents, notifications }: Facts): void {
      // While the webhook is disabled they are held.
      const states = live ? ['pending', 'sending'] : ['sending']
      const unsettled = notifications.filter(({ state }) => states.includes(state))
      expect(unsettled, 'unsettled').to.deep.equal([])
      for (const incident of incidents.filter(({ closed }) => live && !closed)) {
        expect(incident.addressed[2], 'notification 2').to.equal(incident.exhausted)
        if (failingForMs(incident) >= NOTIFY_AFTER_MS)
          expect(incident.addressed[1], 'notification 1').to.equal(true)
      }
    },
  }
}

function isUnresolved({ state, attempts }: DeliveryFacts): boolean {
  return attempts > 0 && ['waiting', 'failed', 'in_progress'].includes(state)
}

function isSame(one: Key, other: Key): boolean {
  const { incidentId, kind, channel, recipient } = one
  return (
    incidentId === other.incidentId &&
    kind === other.kind &&
    channel === other.channel &&
    recipient === other.recipient
  )
}

/** Everything in one statement, so that it is of one moment. */
export async function readFacts(dataSource: DataSource, webhookId: string): Promise<Facts> {
  const [found] = await dataSource.query<{ facts: Facts }[]>(
    `SELECT json_build_object(
       'live', w.enabled AND w.deleted_at IS NULL, 'deleted', w.deleted_at IS NOT NULL,
       'deliveries', ARRAY(SELECT json_build_object('id', id, 'state', state, 'attempts', attempts,
                                                     'isTest', is_test)
                             FROM delivery WHERE webhook_id = w.id ORDER BY id),
       'incidents', ARRAY(SELECT json_build_object(
                            'id', id, 'openedAtMs', floor(extract(epoch FROM opened_at) * 1000),
                            'closed', closed_at IS NOT NULL, 'exhausted', exhausted_at IS NOT NULL,
                            'addressed', json_build_object('1', first_notified_at IS NOT NULL,
                                                           '2', second_notified_at IS NOT NULL))
                            FROM incident WHERE webhook_id = w.id ORDER BY id),
       'notifications', ARRAY(SELECT json_build_object('incidentId', incident_id, 'kind', kind, 'channel', channel,
                                                       'recipient', recipient, 'state', n.state, 'error', error)
                                FROM notification n JOIN incident i ON i.id = n.incident_id
                               WHERE i.webhook_id = w.id ORDER BY n.id)) AS facts
       FROM webhook w WHERE w.id = $1`,
    [webhookId],
  )
  return found!.facts
}
