import assert from 'node:assert/strict'
import type { AttemptOutcome } from '../../../src/domain/attempt-outcome.ts'
import type {
  DeliverEventInput,
  DeliverEventResult,
  DeliverySnapshot,
} from '../../../src/domain/workflow-inputs.ts'
import type { AttemptQueue } from '../../../src/domain/attempt-outcome.ts'
import type { DeliveryRuntime, firstSnapshot, runDelivery } from '../../../workflows/delivery-loop.ts'
import type { Choose } from './explore.ts'
import type { Alphabet, Signal } from './model-events.ts'
import * as rows from './model-events.ts'

/** The loop to check: that of `deliverEvent`, or a mutant of it. */
export type DeliveryLoop = { firstSnapshot: typeof firstSnapshot; runDelivery: typeof runDelivery }

/** Where a run begins. `nowMs` is on Temporal's clock, and the database's is `aheadMs` ahead. */
export type Scene = {
  name: string
  begin: (nowMs: number, aheadMs: number) => { input: Omit<DeliverEventInput, 'leadMs'>; row: rows.ModelRow }
  /** What reaches the workflow before its first task. */
  signal?: Signal
}

/** `longHistory`: so many events make Temporal suggest to continue as new. */
export type Settings = { alphabet: Alphabet; leadMs: number; aheadMs: number; longHistory: number }

/** More than one turn of the loop adds to a history: 2 for a timer, 3 for each of two retries, 3 for an attempt, 1 upsert. */
const MAX_EVENTS_PER_TURN = 12

const DEFERRAL_MS = 2_000
const ATTEMPT_MS = 70
const SET_BACK_MS = 5_000
const STEP_MS = 3_600_000

/** Ends a run. One for all: a stack would cost more than a run. */
const CONTINUED_AS_NEW = new Error('continued as new')

/** The next request that the loop may make without a signal. */
type Expected = { number: number; dueAtMs: number | null; atMs: number; queue: AttemptQueue }

/**
 * Runs one delivery on models of Temporal, of its row and of its users, where `choose` decides what happens, and checks
 * each step. Throws where the loop breaks a promise; `trace` has what happened until then.
 */
export async function runInModel(
  loop: DeliveryLoop,
  scene: Scene,
  { alphabet, leadMs, longHistory, ...settings }: Settings,
  choose: Choose,
  trace: string[],
): Promise<void> {
  let nowMs = 1_000_000
  let { aheadMs } = settings
  const { input: first, row } = scene.begin(nowMs, aheadMs)
  let input: DeliverEventInput = { ...first, leadMs }
  let snapshot: DeliverySnapshot
  let expected = expectedAtFirst(input, nowMs)
  let hasReadFinal = input.recorded !== undefined
  let isCancelRequested = false
  let history = 0
  const indexed: string[] = []
  const wakeUps = { retryRequested: false, rowChanged: false }
  /** Since the latest request: signals, bare retries that are not on the row, timers, and cancellations. */
  const since = { signals: 0, bareRetries: 0, timers: 0, cancellations: 0 }

  function signal(kind: Signal): void {
    trace.push(`signal: ${kind}`)
    since.signals++
    if (kind === 'retry') rows.requestRetry(row, nowMs + aheadMs)
    if (kind === 'stop') rows.stop(row)
    if (kind === 'bare retry') {
      since.bareRetries++
      wakeUps.retryRequested = true
    } else wakeUps.rowChanged = true
  }

  function wait(ms: number, _summary: string, isOver: () => boolean): void {
    if (isOver()) return
    assert.ok(since.signals === 0, 'it sleeps although it was woken')
    isClose(ms, expected.atMs - nowMs, 'it does not sleep for the rest')
    assert.equal(snapshot.nextAttemptAtMs, expected.dueAtMs ?? expected.atMs + leadMs)
    history += 2
    since.timers++
    assert.ok(since.timers <= 1 + since.cancellations, 'it begins more than one timer')
    const event = choose(alphabet.wait(isCancelRequested))
    trace.push(`wait of ${ms} ms: ${event}`)
    switch (event) {
      case 'retry':
      case 'bare retry':
      case 'stop':
      case 'stop without a reason':
        nowMs += ms / 2
        return signal(event)
      case 'cancel':
        nowMs += ms / 2
        since.cancellations++
        isCancelRequested = true
        return
      case 'clock of the database set back':
        aheadMs -= SET_BACK_MS
        break
      case 'clock of Temporal set forward':
        // Past the instant: the timer fires before any time has gone by.
        nowMs += STEP_MS
        aheadMs -= ms + STEP_MS
        break
      case 'clock of Temporal set back':
        aheadMs += STEP_MS
        break
      case 'stop without a signal':
        rows.stop(row)
        break
      case 'success of another run':
      case 'failure of another run':
        if (row.state === 'waiting' || row.state === 'pending')
          rows.record(row, event === 'success of another run', nowMs + aheadMs)
        break
      case 'timer':
    }
    nowMs += ms
  }

  function makeAttempt({ number, dueAtMs, queue }: RequestOf<'makeAttempt'>): AttemptOutcome {
    assert.ok(since.bareRetries === 0, 'a retry that a signal requested is not on the row')
    assert.deepEqual([number, queue], [expected.number, expected.queue])
    if (since.signals > 0) assert.ok(dueAtMs === null, 'it was woken, and waits for an instant')
    else {
      assert.equal(dueAtMs, expected.dueAtMs, 'it requests another instant')
      assert.ok(nowMs > expected.atMs - 0.001, `it requests the attempt ${expected.atMs - nowMs} ms early`)
    }
    history += 3
    assert.ok(history < longHistory + MAX_EVENTS_PER_TURN, 'its history grows without a bound')
    Object.assign(since, { signals: 0, bareRetries: 0, timers: 0, cancellations: 0 })
    if (dueAtMs !== null) nowMs += Math.min(Math.max(0, dueAtMs - nowMs - aheadMs), leadMs)
    const isClaimed = rows.claim(row, number, nowMs + aheadMs)
    const { event, meanwhile } = choose(alphabet.attempt(isClaimed, queue === 'slow'))
    trace.push(`attempt ${number} at ${nowMs}: ${event}`)
    const isDeferred = event === 'deferred' || event === 'sent to the slow queue'
    if (isDeferred && isClaimed) rows.release(row)
    nowMs += ATTEMPT_MS
    if (meanwhile !== null) signal(meanwhile)
    nowMs += ATTEMPT_MS
    if (isDeferred) return defer(number, event === 'deferred' ? DEFERRAL_MS : 0)
    if (isClaimed) rows.record(row, event === 'confirmed', nowMs + aheadMs)
    const failureCode = failureCodeOf(event)
    const outcome = rows.outcomeOf(row, nowMs + aheadMs, failureCode)
    expectAfter(outcome, queue, number)
    return outcome
  }

  function defer(number: number, delayMs: number): AttemptOutcome {
    expected = { number, dueAtMs: null, atMs: nowMs + delayMs, queue: 'slow' }
    hasReadFinal = false
    return { state: 'deferred', delayMs }
  }

  function expectAfter(outcome: AttemptOutcome, queue: AttemptQueue, number: number): void {
    if (outcome.state === 'deferred') return
    const { state, attempts, failureCode } = outcome
    hasReadFinal = state !== 'waiting'
    const due = state === 'waiting' ? outcome : { dueAtMs: null, dueInMs: leadMs }
    const afterAttempt = failureCode === 'timeout' ? 'slow' : 'retry'
    expected = {
      number: attempts + 1,
      dueAtMs: due.dueAtMs,
      atMs: nowMs + due.dueInMs - leadMs,
      queue: attempts < number ? queue : afterAttempt,
    }
  }

  function requestRetry(): void {
    assert.ok(since.bareRetries > 0, 'it records a retry that was not requested')
    since.bareRetries = 0
    history += 3
    rows.requestRetry(row, nowMs + aheadMs)
    const meanwhile = choose(alphabet.recording)
    trace.push('the retry is recorded')
    if (meanwhile !== null) signal(meanwhile)
  }

  function continueAsNew(successor: DeliverEventInput): never {
    trace.push('continues as new')
    assert.ok(isCancelRequested || history >= longHistory, 'it continues as new without a reason')
    assert.ok(since.bareRetries === 0, 'a retry that a signal requested is lost')
    const { next } = successor.continued!
    if (since.signals > 0) assert.ok(next.dueAtMs === null && next.wakeAtMs <= nowMs, 'a signal is lost')
    else {
      assert.equal(next.dueAtMs, expected.dueAtMs, 'the successor has another instant')
      isClose(next.wakeAtMs, expected.atMs, 'the successor wakes at another time')
    }
    input = JSON.parse(JSON.stringify(successor)) as DeliverEventInput
    throw CONTINUED_AS_NEW
  }

  function checkEnd({ state, attempts }: DeliverEventResult): void {
    assert.ok(hasReadFinal, 'it ends without having read that the row is final')
    if (state !== 'completed') assert.ok(since.signals === 0, 'it ends although it was woken')
    if (since.signals === 0) assert.deepEqual([state, attempts], [row.state, row.attempts])
    assert.ok(
      indexed.length <= 2 && (indexed.length === 0 || indexed.at(-1) === state),
      'it is indexed wrongly',
    )
  }

  if (scene.signal !== undefined) signal(scene.signal)
  for (;;) {
    snapshot = loop.firstSnapshot(input)
    try {
      const result = await loop.runDelivery(input, snapshot, {
        nowMs: () => nowMs,
        wakeUps,
        isCancelRequested: () => isCancelRequested,
        isHistoryLong: () => history >= longHistory,
        wait: inOrder(wait),
        makeAttempt: inOrder(makeAttempt),
        requestRetry: inOrder(requestRetry),
        show: () => undefined,
        indexState: (state) => void indexed.push(state),
        isIndexedAsWaiting: () => indexed.includes('waiting'),
        continueAsNew: inOrder(continueAsNew),
      })
      checkEnd(result)
      return
    } catch (error) {
      if (error !== CONTINUED_AS_NEW) throw error
      history = 0
      isCancelRequested = false
      // What was signalled is the successor's first request.
      Object.assign(wakeUps, { retryRequested: false, rowChanged: false })
    }
  }
}

type RequestOf<Name extends 'makeAttempt'> = Parameters<DeliveryRuntime[Name]>[0]

/** Lets a function that ends at once look like one that takes a while. */
function inOrder<Args extends unknown[], Result>(
  act: (...args: Args) => Result,
): (...args: Args) => Promise<Result> {
  return async (...args) => {
    await Promise.resolve()
    return act(...args)
  }
}

function expectedAtFirst({ next, leadMs, recorded }: DeliverEventInput, nowMs: number): Expected {
  const { number, dueAtMs, waitMs } = next
  const dueHereAtMs = waitMs === undefined ? (dueAtMs ?? nowMs) : nowMs + waitMs
  const atMs = recorded === undefined ? dueHereAtMs - leadMs : nowMs
  return { number, dueAtMs, atMs, queue: number > 1 ? 'retry' : 'first' }
}

function failureCodeOf(event: string) {
  if (event === 'timed out') return 'timeout'
  return event === 'refused' ? 'http_status' : null
}

function isClose(actual: number, wanted: number, message: string): void {
  assert.ok(Math.abs(actual - wanted) < 0.001, `${message}: ${actual}, not ${wanted}`)
}
