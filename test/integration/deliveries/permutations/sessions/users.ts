import type { Actor } from '../../../../../src/domain/actor.ts'
import { discardDelivery } from '../../../../../src/deliveries/retry/discard-deliveries.ts'
import { retryDelivery } from '../../../../../src/deliveries/retry/retry-delivery.ts'
import { ProblemError } from '../../../../../src/problem-error.ts'
import { deleteWebhook, updateWebhook } from '../../../../../src/webhooks/change-webhook.ts'
import { silentLogger } from '../../../../helpers/silent-logger.ts'
import type { Did } from '../outcome.ts'
import { deliveryId, EVENT_KEY, ORGANISATION, WEBHOOK } from '../rows.ts'
import { locks, type Session } from './session.ts'

const actor: Actor = {
  organisationId: ORGANISATION,
  memberId: 'mem_permutations',
  apiKeyId: null,
  keyHash: null,
  isErasing: false,
  fullAccess: true,
  permissions: [],
  address: '127.0.0.1',
  requestId: 'request',
}

/** What commands need besides the database. */
const surroundings = {
  locks,
  logger: silentLogger,
  workflows: { wake: () => Promise.resolve() },
  incidentWorkflows: { signal: () => Promise.resolve() },
  catalogue: { permissionFor: () => 'webhook:read' },
  urlPolicy: { allowHttp: 'loopback', allowedCidrs: [] },
  webhooks: { changed: () => undefined },
  metrics: { deliveriesStopped: () => undefined },
} as const

const CHANGES = {
  off: { enabled: false },
  on: { enabled: true },
  narrow: { subscribedEventKeys: ['customer:created'] },
  widen: { subscribedEventKeys: [EVENT_KEY, 'customer:created'] },
}

/** Changes of the webhook by one user, one after another. */
export function change(...changes: readonly (keyof typeof CHANGES)[]): Session {
  return async (dataSource) => {
    for (const next of changes)
      await updateWebhook({ ...surroundings, dataSource }, actor, WEBHOOK, CHANGES[next])
    return {}
  }
}

export const remove: Session = async (dataSource) => {
  await deleteWebhook({ ...surroundings, dataSource }, actor, WEBHOOK)
  return {}
}

export function retry(place: number): Session {
  return (dataSource) =>
    answered(retryDelivery({ ...surroundings, dataSource }, actor, WEBHOOK, deliveryId(place)))
}

export function discard(place: number): Session {
  return (dataSource) =>
    answered(discardDelivery({ ...surroundings, dataSource }, actor, WEBHOOK, deliveryId(place)))
}

/** A refusal is an answer, too. */
async function answered(work: Promise<unknown>): Promise<Did> {
  try {
    await work
    return { answer: 'accepted' }
  } catch (error) {
    if (error instanceof ProblemError) return { answer: error.problem.code }
    throw error
  }
}
