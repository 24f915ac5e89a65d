import type { ExplorerDatabase } from './database.ts'
import type { Model, Step } from './explore.ts'
import { acceptingProcess } from './actors/accepting-process.ts'
import type { Actor, Context, Options } from './actors/context.ts'
import { faults } from './actors/faults.ts'
import { puller } from './actors/puller.ts'
import { runs } from './actors/runs.ts'
import { sweeper } from './actors/sweeper.ts'
import { time } from './actors/time.ts'
import { user } from './actors/user.ts'
import { workflows } from './actors/workflow.ts'
import { deliveryId, eventId, OPEN_INCIDENT, WEBHOOK } from './image.ts'
import { keyOf } from './key.ts'
import { createProduct, EVENT_KEYS } from './product.ts'
import { brokenRules, isOwedItsWorkflow } from './rules.ts'
import { numberOf, type State } from './state.ts'

const ACTORS: readonly Actor[] = [acceptingProcess, puller, workflows, runs, sweeper, user, faults, time]

/** The model of a configuration: everything that its actors may do, on real rows. */
export function createModel(database: ExplorerDatabase, options: Options): Model<State> {
  const context: Context = { product: createProduct(database, options.followAfterMs), options }
  return {
    initial: initialState(options),
    steps: (state): Step<State>[] =>
      ACTORS.flatMap((actor) => actor(state, context)).map((step) => ({
        ...step,
        take: async () => {
          const after = await step.take()
          return after && withoutOldSwitch(after)
        },
      })),
    key: keyOf,
    check: (before, step, after) => [
      ...brokenRules(before, step, after),
      ...(options.followAfterMs === null ||
      after.image.delivery.every((_, delivery) => isOwedItsWorkflow(after, delivery))
        ? []
        : ['a delivery that was attempted has its workflow, or is owed one']),
    ],
    isSettled: (state) => state.image.delivery.every((row) => row['completed_at'] !== null),
  }
}

/** Since when a webhook is off matters only to runs that claimed a delivery before. */
function withoutOldSwitch(state: State): State {
  const isOver = (forMs: number | null, delivery: number): boolean =>
    forMs !== null && !state.runs.some((run) => run.delivery === delivery && run.phase === 'claimed')
  if (!state.unwantedForMs.some(isOver)) return state
  const unwantedForMs = state.unwantedForMs.map((forMs, delivery) => (isOver(forMs, delivery) ? null : forMs))
  return { ...state, unwantedForMs }
}

function initialState({ deliveries, firstAttempts, maxFaults }: Options): State {
  const state: State = {
    image: {
      webhook: [{ id: WEBHOOK, subscribed_event_keys: [...EVENT_KEYS], enabled: true, deleted_at: null }],
      event: [],
      delivery: [],
      attempt: [],
      incident: [],
    },
    runs: [],
    workflows: [null, null],
    tasks: [],
    unwantedForMs: [null, null],
    posts: [0, 0],
    faultsLeft: numberOf(maxFaults),
    happened: { type: 'other' },
  }
  if (firstAttempts === 0) return state
  return waiting(state, deliveries, firstAttempts)
}

/** Deliveries that wait, with their workflows, after so many failed attempts. */
function waiting(state: State, deliveries: number, attempts: number): State {
  const dueInMs = 60_000
  const all = Array.from({ length: deliveries }, (_, delivery) => delivery)
  const columns = {
    is_test: false,
    is_erased: false,
    stop_reason: null,
    runs: 0,
    retry_requested: false,
    attempt_requested: false,
    owner: null,
    lease_until: null,
    paused_since: null,
    completed_at: null,
    created_at: -1,
    workflow_started_at: -1,
  }
  return {
    ...state,
    image: {
      ...state.image,
      event: all.map((delivery) => ({ id: eventId(delivery), key: EVENT_KEYS[delivery] })),
      delivery: all.map((delivery) => ({
        ...columns,
        id: deliveryId(delivery),
        event_id: eventId(delivery),
        webhook_id: WEBHOOK,
        state: 'waiting',
        attempts,
        next_attempt_at: dueInMs,
        sweep_at: dueInMs + 15_000,
      })),
      incident: [
        { id: OPEN_INCIDENT, webhook_id: WEBHOOK, closed_at: null, exhausted_at: null, resting: false },
      ],
    },
    workflows: state.workflows.map((_, delivery) =>
      delivery < deliveries
        ? {
            phase: 'sleep',
            number: attempts + 1,
            inMs: dueInMs,
            owner: null,
            outcome: null,
            isWoken: false,
            isPaused: false,
          }
        : null,
    ),
  }
}
