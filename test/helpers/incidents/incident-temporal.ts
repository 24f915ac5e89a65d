import type { DataSource } from 'typeorm'
import { findIncidentsToSignal } from '../../../src/db/queries/incidents.ts'
import {
  nextRound,
  nextTimer,
  unsettled,
  type SendingTimer,
  type StreakTimer,
} from '../../../src/domain/notification-rules.ts'
import type {
  IncidentLabel,
  EvaluationRequest,
  UpdateIncidentRequest,
  UpdatedIncident,
} from '../../../src/domain/workflow-inputs.ts'
import { type Channels, sendDue } from '../../../src/incidents/notifications/send-due.ts'
import type { IncidentWorkflows } from '../../../src/temporal/workflows.ts'
import { evaluateNotifications } from '../../../src/incidents/evaluate-notifications.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { silentLogger } from '../silent-logger.ts'

export const NOTIFY_AFTER_MS = 5 * 60_000

/**
 * A clock that can be put forward. PostgreSQL's cannot: instead the rows are put back by as much, so that what a row
 * says plus `aheadMs` is the time on this clock.
 */
export type VirtualClock = { aheadMs: number; now(): number }

export function createVirtualClock(): VirtualClock {
  const clock = { aheadMs: 0, now: () => Date.now() + clock.aheadMs }
  return clock
}

/** Workers of one turn: two run the same activity when Temporal takes the first for lost. */
export type Crew = { workers: 1 | 2; death: Death | null }

/** The variables of `workflows/incident.ts`. Times are those of the virtual clock. */
type Execution = {
  incident: IncidentLabel
  changed: boolean
  timer: StreakTimer | null
  again: SendingTimer | null
  wakeAtMs: number
  /** The activity that died with its worker: Temporal gives the very same to another one. */
  lost: { dueFor: number | null; retry: boolean } | null
}

/** Temporal, with a workflow for each incident that acts like `workflows/incident.ts`. */
export type FakeIncidentTemporal = IncidentWorkflows & {
  /** While it is away every call throws, and no workflow moves. */
  isAway: boolean
  /** What the sweeper does for incidents every second. */
  sweep(): Promise<void>
  /** One turn of each workflow whose time has come; false when there was none. */
  turn(crew: Crew): Promise<boolean>
  /** Loses every workflow: terminated by hand, or its data is gone. */
  forget(): void
}

export function createFakeIncidentTemporal(dependencies: {
  dataSource: DataSource
  channels: Channels
  clock: VirtualClock
}): FakeIncidentTemporal {
  const { dataSource, clock } = dependencies
  const executions = new Map<string, Execution>()

  async function turnOf(execution: Execution, crew: Crew): Promise<void> {
    const { timer } = execution
    if (execution.lost === null) {
      execution.changed = false
      const dueFor = timer !== null && timer.dueAtMs <= clock.now() ? timer.sinceMs : null
      const retry = execution.again !== null && execution.again.atMs <= clock.now()
      execution.lost = { dueFor, retry }
    }
    const kept = await keep(execution, execution.lost, crew)
    if (kept === null) return
    const retried = execution.lost.retry
    execution.lost = null
    if (kept.evaluation === null) {
      end(execution)
      return
    }
    const left = unsettled(kept.notifications)
    const { open, streak } = kept.evaluation
    const seen = streak === null ? null : { ...streak, sinceMs: streak.sinceMs + clock.aheadMs }
    execution.timer = nextTimer(timer, seen, clock.now(), NOTIFY_AFTER_MS)
    execution.again = nextRound(execution.again, left, retried, clock.now())
    if (!open && left === 0) {
      end(execution)
      return
    }
    execution.wakeAtMs = Math.min(execution.timer?.dueAtMs ?? Infinity, execution.again?.atMs ?? Infinity)
  }

  async function keep(execution: Execution, asked: NonNullable<Execution['lost']>, crew: Crew) {
    const { organisationId, incidentId } = execution.incident
    const dueFor = asked.dueFor === null ? null : asked.dueFor - clock.aheadMs
    const request = { ...asked, organisationId, incidentId, dueFor, notifyAfterMs: NOTIFY_AFTER_MS }
    const runs = Array.from({ length: crew.workers }, (_, index) =>
      keepIncidentOnce({ ...dependencies, death: index === 0 ? crew.death : null }, request),
    )
    return (await Promise.all(runs)).find((kept) => kept !== null) ?? null
  }

  function end({ incident }: Execution): void {
    executions.delete(incident.incidentId)
  }

  const temporal: FakeIncidentTemporal = {
    isAway: false,
    signal(incident) {
      if (temporal.isAway) return Promise.reject(new Error('Temporal is unavailable'))
      const fresh = { incident, timer: null, again: null, wakeAtMs: Infinity, lost: null }
      const execution = executions.get(incident.incidentId) ?? { ...fresh, changed: true }
      execution.changed = true
      executions.set(incident.incidentId, execution)
      return Promise.resolve()
    },
    async sweep() {
      // An incident whose signal was lost is still due, and found again.
      const owed = await findIncidentsToSignal(dataSource, 200)
      await Promise.allSettled(owed.map((incident) => temporal.signal(incident)))
    },
    async turn(crew) {
      const isDue = ({ changed, lost, wakeAtMs }: Execution): boolean =>
        changed || lost !== null || wakeAtMs <= clock.now()
      const due = temporal.isAway ? [] : [...executions.values()].filter(isDue)
      for (const execution of due) await turnOf(execution, crew)
      return due.length > 0
    },
    forget: () => executions.clear(),
  }
  return temporal
}

/**
 * At which step a worker dies, counted from 1; a step is one statement, one transaction or one message. `before`: the
 * step does not happen · `after`: it does, and its result is lost.
 */
type Death = { atStep: number; effect: 'before' | 'after' }

/** Runs `act` as one step; in a dead worker it never comes back, as nothing does in a dead process. */
type Step = <T>(act: () => Promise<T>) => Promise<T>

/**
 * Does what `activity `updateIncident` does, in a process that may die at any step of it. Null when it died; then
 * all that it had begun has come to its end in the database and nothing more will come from it.
 */
async function keepIncidentOnce(
  dependencies: { dataSource: DataSource; channels: Channels; death: Death | null },
  request: UpdateIncidentRequest,
): Promise<UpdatedIncident | null> {
  const { step, died } = createLife(dependencies.death)
  const dataSource = mortalDataSource(dependencies.dataSource, step)
  const channels = mortalChannels(dependencies.channels, step)
  const keep = async (look: EvaluationRequest): Promise<UpdatedIncident> => {
    const seen = await evaluateNotifications({ dataSource, locks: createWebhookLocks() }, look)
    if (seen === null) return { evaluation: null, notifications: [] }
    const signal = new AbortController().signal
    const notifications = await sendDue(
      { dataSource, channels, logger: silentLogger, metrics: createMetrics() },
      request,
      signal,
    )
    return { evaluation: seen, notifications }
  }
  return Promise.race([keep(request), died])
}

function createLife(death: Death | null): { step: Step; died: Promise<null> } {
  const underWay = new Set<Promise<unknown>>()
  const never = new Promise<never>(() => undefined)
  let bury: (value: null) => void = () => undefined
  const died = new Promise<null>((resolve) => {
    bury = resolve
  })
  let steps = 0
  let isDead = false

  const step: Step = async (act) => {
    if (isDead) return never
    steps += 1
    const isLast = steps === death?.atStep
    if (isLast) isDead = true
    if (!isLast || death.effect === 'after') {
      const acting = act()
      underWay.add(acting)
      const result = await acting.finally(() => underWay.delete(acting))
      // The result of a step that ends after the process is lost.
      if (!isDead) return result
    }
    // What was sent to the database before is carried out all the same.
    if (isLast) void Promise.allSettled(underWay).then(() => bury(null))
    return never
  }
  return { step, died }
}

/** The calls that `src` makes of a pool; a transaction is one step, since one that is broken off leaves nothing. */
function mortalDataSource(dataSource: DataSource, step: Step): DataSource {
  const calls: Partial<DataSource> = {
    query: (sql: string, parameters?: unknown[]) => step(() => dataSource.query(sql, parameters)),
    transaction: ((run: Parameters<DataSource['transaction']>[1]) =>
      step(() => dataSource.transaction(run))) as unknown as DataSource['transaction'],
  }
  return new Proxy(dataSource, {
    get: (target, name) =>
      name in calls ? calls[name as keyof DataSource] : (Reflect.get(target, name) as unknown),
  })
}

function mortalChannels({ email, push }: Channels, step: Step): Channels {
  return {
    email: email === null ? null : { ...email, send: (notice, to) => step(() => email.send(notice, to)) },
    push: push === null ? null : { ...push, send: (notice, to) => step(() => push.send(notice, to)) },
  }
}
