import { expect } from 'chai'
import * as loop from '../../../workflows/delivery-loop.ts'
import { explore, type Explored } from '../../helpers/workflows/explore.ts'
import { loadMutant, LOOP_MUTANTS } from '../../helpers/workflows/loop-mutants.ts'
import {
  ATTEMPT_EVENTS,
  createAlphabet,
  type ModelRow,
  requestRetry,
  rowOf,
  type Signal,
  SIGNALS,
  WAIT_EVENTS,
} from '../../helpers/workflows/model-events.ts'
import {
  type DeliveryLoop,
  runInModel,
  type Scene,
  type Settings,
} from '../../helpers/workflows/model-run.ts'
import type { RecordedAttempt } from '../../../src/domain/workflow-inputs.ts'

const ids = { organisationId: 'org_1', webhookId: 'webhook', deliveryId: 'delivery' }

/** How far in the future a retry waits that is handed to a workflow. */
const WAIT_MS = 300_000

/** Where deliveries begin that make their first attempt themselves, or go on after one that a process made. */
const SCENES: readonly Scene[] = [
  {
    name: 'a new delivery',
    begin: () => ({ input: { ...ids, next: { number: 1, dueAtMs: null } }, row: rowOf({}) }),
  },
  {
    name: 'one whose first attempt was made without a workflow',
    begin(nowMs, aheadMs) {
      const dueAtMs = nowMs + aheadMs + WAIT_MS
      const row = rowOf({ state: 'waiting', attempts: 1, dueAtMs })
      return { input: { ...ids, next: { number: 2, dueAtMs, waitMs: WAIT_MS } }, row }
    },
  },
  {
    name: 'one that is retried',
    signal: 'retry',
    begin: (nowMs, aheadMs) => retried(rowOf({ state: 'failed', attempts: 3 }), nowMs + aheadMs),
  },
  {
    name: 'one that is started again although it is completed',
    begin: () => ({
      input: { ...ids, next: { number: 1, dueAtMs: null } },
      row: rowOf({ state: 'completed', attempts: 1 }),
    }),
  },
]

/** Workflows that only follow, and what reaches them before their first task. */
const FOLLOWING_SCENES: readonly Scene[] = [
  following({ state: 'completed', attempts: 1 }),
  following({ state: 'completed', attempts: 1 }, 'stop without a reason'),
  following({ state: 'stopped', attempts: 1 }),
  following({ state: 'stopped', attempts: 1 }, 'retry'),
  following({ state: 'stopped', attempts: 1 }, 'bare retry'),
  following({ state: 'failed', attempts: 3 }, 'retry'),
  following({ state: 'failed', attempts: 3 }, 'stop'),
]

function following(recorded: RecordedAttempt, signal?: Signal): Scene {
  const { state, attempts } = recorded
  return {
    name: `one that only follows, ${state}${signal === undefined ? '' : `, signalled: ${signal}`}`,
    ...(signal && { signal }),
    begin: () => ({
      input: { ...ids, next: { number: attempts + 1, dueAtMs: null }, recorded },
      row: rowOf({ state, attempts }),
    }),
  }
}

function retried(row: ModelRow, databaseMs: number): ReturnType<Scene['begin']> {
  requestRetry(row, databaseMs)
  return { input: { ...ids, next: { number: row.attempts + 1, dueAtMs: null } }, row }
}

/** Everything that can happen, for short sequences. */
const EVERYTHING = createAlphabet({ wait: WAIT_EVENTS, attempt: ATTEMPT_EVENTS, signals: SIGNALS })

/** What wakes a workflow, defers it and makes it wait again, for long ones. */
const WAKING = createAlphabet({
  wait: ['timer', 'retry', 'stop without a reason', 'cancel'],
  attempt: ['deferred', 'refused', 'not claimed'],
  signals: ['bare retry'],
})

const PRODUCTION: Settings = { alphabet: EVERYTHING, leadMs: 1_000, aheadMs: 0, longHistory: Infinity }

/** A history of two turns of the loop is long. */
const SHORT_HISTORY = 8

/** `npm run test:protocol` goes a step further, which takes five times as long. */
const FURTHER_STEPS = process.env['POSTHORN_TEST_FURTHER'] === undefined ? 0 : 1

type Part = { title: string; scenes: readonly Scene[]; depth: number; settings: Settings }

const PARTS: readonly Part[] = [
  { title: 'everything that can happen', scenes: SCENES, depth: 3 + FURTHER_STEPS, settings: PRODUCTION },
  {
    title: 'wake-ups, deferrals and waits',
    scenes: SCENES,
    depth: 7 + FURTHER_STEPS,
    settings: { ...PRODUCTION, alphabet: WAKING },
  },
  {
    title: 'the same without a lead, with the clocks an hour apart',
    scenes: SCENES,
    depth: 5 + FURTHER_STEPS,
    settings: { ...PRODUCTION, alphabet: WAKING, leadMs: 0, aheadMs: 3_600_000 },
  },
  {
    title: 'the same with histories that are soon long',
    scenes: SCENES,
    depth: 7 + FURTHER_STEPS,
    settings: { ...PRODUCTION, alphabet: WAKING, longHistory: SHORT_HISTORY },
  },
  {
    title: 'workflows that only follow',
    scenes: FOLLOWING_SCENES,
    depth: 2 + FURTHER_STEPS,
    settings: PRODUCTION,
  },
]

/** Throws where the loop breaks a promise, with the sequence that shows it. */
async function exploreScene(of: DeliveryLoop, scene: Scene, { depth, settings }: Part): Promise<Explored> {
  let trace: string[] = []
  try {
    return await explore(depth, (choose) => {
      trace = []
      return runInModel(of, scene, settings, choose, trace)
    })
  } catch (error) {
    if (!(error instanceof Error)) throw error
    throw new Error([error.message, scene.name, ...trace].join('\n      '), { cause: error })
  }
}

/**
 * Checks in every step: no attempt is requested before its instant unless a signal came; it sleeps for the rest that the
 * row gave, less the lead; no signal is lost; it ends when it has read that the row is final, and not before; a wait adds
 * a bounded number of events to the history.
 */
describe('the loop of deliverEvent, explored', () => {
  for (const part of PARTS)
    it(`keeps its promises in all sequences of ${part.depth} steps: ${part.title}`, async () => {
      const startedAtMs = performance.now()
      const total = { sequences: 0, cut: 0 }
      for (const scene of part.scenes) {
        const { sequences, cut } = await exploreScene(loop, scene, part)
        total.sequences += sequences
        total.cut += cut
      }
      const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1)
      const { sequences, cut } = total
      process.stdout.write(`      ${sequences} sequences, ${cut} of them longer, in ${seconds} s\n`)
      expect(sequences).to.be.above(part.scenes.length)
    })

  for (const mutant of LOOP_MUTANTS)
    it(`finds a fault: ${mutant.name}`, async () => {
      const mutated = await loadMutant(mutant)
      const found: string[] = []
      for (const part of PARTS.toReversed())
        for (const scene of part.scenes)
          if (found.length === 0)
            await exploreScene(mutated, scene, part).catch((error: unknown) => {
              found.push(error instanceof Error ? error.message : String(error))
            })
      expect(found).to.have.length(1)
      if (process.env['SHOW']) process.stdout.write(`      ${found[0]!}\n`)
    })
})
