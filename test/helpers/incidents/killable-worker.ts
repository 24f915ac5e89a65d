import type { DataSource } from 'typeorm'
import { evaluateIncident } from '../../../src/incidents/evaluate-incident.ts'
import { createWebhookLocks } from '../../../src/webhooks/webhook-locks.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { sendDue, type Channels } from '../../../src/incidents/notifications/send-due.ts'
import type {
  EvaluationRequest,
  UpdateIncidentRequest,
  UpdatedIncident,
} from '../../../src/domain/workflow-inputs.ts'
import { silentLogger } from '../silent-logger.ts'

/**
 * At which step a worker dies, counted from 1; a step is one statement, one transaction or one message. `before`: the
 * step never happened · `after`: it did, and nobody heard of it.
 */
export type Death = { atStep: number; effect: 'before' | 'after' }

/** Runs `act` as one step; in a dead worker it never comes back, as nothing does in a dead process. */
type Step = <T>(act: () => Promise<T>) => Promise<T>

/**
 * Does what `activity `updateIncident` does, in a process that may die at any step of it. Null when it died; then
 * all that it had begun has come to its end in the database and nothing more will come from it.
 */
export async function keepIncidentOnce(
  dependencies: { dataSource: DataSource; channels: Channels; death: Death | null },
  request: UpdateIncidentRequest,
): Promise<UpdatedIncident | null> {
  const { step, died } = createLife(dependencies.death)
  const dataSource = mortalDataSource(dependencies.dataSource, step)
  const channels = mortalChannels(dependencies.channels, step)
  const keep = async (look: EvaluationRequest): Promise<UpdatedIncident> => {
    const seen = await evaluateIncident({ dataSource, locks: createWebhookLocks() }, look)
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
      // An answer that arrives after the end of the process is heard by nobody.
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
