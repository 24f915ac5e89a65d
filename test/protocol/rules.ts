import { waitAfterAttempt } from '../../src/domain/retry-schedule.ts'
import type { Step } from './explore.ts'
import { covers, takes } from './actors/webhook.ts'
import type { Row } from './image.ts'
import { numberOf, rowOf, UNWANTED_FOR_LONG_MS, type State } from './state.ts'

/** A claim may be so much too early. */
const DUE_TOLERANCE_MS = 3

/** Lost runs after which an attempt is given up. */
const MAX_POSTS = 5

/** How long after its time the sweeper reads a row: without a workflow, or with one that was found alive. */
const SWEEP_BOUND_MS = 60_000
const ALIVE_BOUND_MS = 300_000

/** A workflow that sleeps no longer need not be told of the end of its delivery: it may be started just after it. */
const MAX_SLEEP_MS = 1_010

/** What is promised of every step and of every state. Returns what is broken. */
export function brokenRules(before: State, step: Step<State>, after: State): string[] {
  return [
    ...posts(before, after),
    ...owners(before, after),
    ...records(before, after),
    ...incidents(before, after),
    ...after.image.delivery.flatMap((row, delivery) => [
      ...transition(before, after, delivery, row, step),
      ...standing(after, delivery, row),
    ]),
  ]
}

/** Rules 1, 2, 5 and 6: who may begin a POST. */
function posts(before: State, after: State): string[] {
  const { happened } = after
  if (happened.type === 'claimed') {
    const row = rowOf(before, happened.run.delivery)!
    const isEarly = row['state'] === 'waiting' && numberOf(row['next_attempt_at']) > DUE_TOLERANCE_MS
    const isLeased = isUnderWay(row)
    const is = rowOf(after, happened.run.delivery)!
    const wasRequested = row['retry_requested'] === true || row['attempt_requested'] === true
    const isRequest = row['state'] !== 'pending' && wasRequested
    return [
      ...(is['retry_requested'] === false && is['attempt_requested'] === isRequest
        ? []
        : ['a claim takes the requested retry with it']),
      ...(isEarly ? ['nothing is claimed before its time'] : []),
      ...(isLeased ? ['no run claims a row while another run has it'] : []),
      ...(takes(before, happened.run.delivery)
        ? []
        : ['a webhook that does not take a delivery has none claimed']),
    ]
  }
  if (happened.type !== 'began') return []
  const { run } = happened
  const { delivery } = run
  const row = rowOf(after, delivery)!
  const broken: string[] = []
  const others = before.runs.filter((other) => other.delivery === delivery && other.owner !== run.owner)
  const isInFlight = others.some(
    ({ phase, isStalled }) => !isStalled && (phase === 'posting' || phase === 'sent'),
  )
  if (isInFlight && !run.isStalled)
    broken.push('no second POST begins while one is in flight, without a fault')
  // A run that was paused may confirm the delivery while another one is about to post.
  const isConfirmed = row['state'] === 'completed'
  if (!run.isStalled && !isConfirmed && (row['state'] !== 'in_progress' || row['owner'] !== run.owner))
    broken.push('no POST begins before its row says so')
  if (
    !run.isStalled &&
    numberOf(row['next_attempt_at']) < Infinity &&
    numberOf(row['next_attempt_at']) > DUE_TOLERANCE_MS
  )
    broken.push('no POST begins before its time')
  const unwantedForMs = before.unwantedForMs[delivery] ?? 0
  if (!run.isStalled && unwantedForMs >= UNWANTED_FOR_LONG_MS)
    broken.push('no POST begins more than a second after a switch-off was answered')
  const sent = after.posts[delivery]!
  if (!run.isStalled && !isConfirmed && Number(row['runs']) < sent)
    broken.push('each run that may have posted is counted before its POST')
  if (sent > MAX_POSTS) broken.push('the runs of an attempt are bounded')
  return broken
}

/** Rule 6: whose rows a run and a user change. */
function owners(before: State, after: State): string[] {
  const { happened } = after
  if (happened.type === 'retried')
    return after.image.delivery.every(
      (row, delivery) =>
        takes(before, delivery) ||
        row === before.image.delivery[delivery] ||
        isSame(row, rowOf(before, delivery)),
    )
      ? []
      : ['no retry is requested of what its webhook does not take']
  if (happened.type === 'switched' || happened.type === 'deleted')
    return after.image.delivery.every((row, delivery) => {
      const wasStopped = rowOf(before, delivery)?.['state'] === 'stopped'
      // What was returned to its row while the webhook was off is stopped by the next claim.
      const isLeft = !takes(after, delivery) && (takes(before, delivery) || wasStopped)
      return !isLeft || isOver(row) || isUnderWay(row)
    })
      ? []
      : ['a switch-off stops everything but attempts under way, and resumes nothing']
  if (happened.type === 'committed')
    return takes(before, happened.delivery) ? [] : ['a webhook that does not take an event gets no delivery']
  if (happened.type === 'erased')
    return rowOf(after, happened.delivery)!['is_erased'] === true
      ? []
      : ['an erasure marks the deliveries of its event']
  if (happened.type !== 'gave_back' && happened.type !== 'renewed') return []
  const [was, is] = [rowOf(before, happened.run.delivery)!, rowOf(after, happened.run.delivery)!]
  if (was['owner'] !== happened.run.owner)
    return isSame(was, is) ? [] : ['a run releases and renews only what it has']
  const counted = happened.type === 'gave_back' && !happened.hasPosted ? 1 : 0
  return is['runs'] === Number(was['runs']) - counted ? [] : ['a run that sent nothing is not counted']
}

const isOver = (row: Row): boolean => row['completed_at'] !== null
const isUnderWay = (row: Row): boolean => row['state'] === 'in_progress' && numberOf(row['lease_until']) >= 0
const isSame = (one: object | undefined, other: object | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** Rules 4 and 6: what a record does. */
function records(before: State, after: State): string[] {
  const { happened } = after
  if (happened.type !== 'recorded') return []
  const { run, outcome } = happened
  const [was, is] = [rowOf(before, run.delivery)!, rowOf(after, run.delivery)!]
  const broken: string[] = []
  if (run.hasSucceeded) {
    if (is['state'] !== 'completed') broken.push('what a receiver confirmed is completed')
    return broken
  }
  const isOwner = was['state'] === 'in_progress' && was['owner'] === run.owner
  if (isOwner && outcome === null) broken.push('the failure of the run that has the row is recorded')
  if (!isOwner && !isSame(was, is)) broken.push('a failure is recorded only by the run that has the row')
  if (!isOwner || outcome === null) return broken
  if (is['attempts'] !== run.number) broken.push('an attempt is recorded once, under its number')
  const isTaken = takes(before, run.delivery)
  if (isTaken === (is['state'] === 'stopped'))
    broken.push('what follows a failure goes by the webhook as it is')
  if (is['state'] === 'waiting') {
    const waitMs = was['retry_requested'] === true ? 0 : (waitAfterAttempt(run.number) ?? 0)
    const dueInMs = Number(is['next_attempt_at'])
    if (dueInMs < waitMs || dueInMs > waitMs + DUE_TOLERANCE_MS)
      broken.push('the next attempt is due when the schedule says')
  }
  if (was['retry_requested'] === true && isTaken && is['state'] !== 'waiting')
    broken.push('a retry that was requested during an attempt follows it')
  return broken
}

const isUnresolved = (row: Row): boolean =>
  Number(row['attempts']) > 0 && ['waiting', 'failed', 'in_progress'].includes(String(row['state']))

/** Design section 6: who opens and who closes an incident. */
function incidents(before: State, after: State): string[] {
  const { happened, image } = after
  const [wasOpen, isOpen] = [before.image.incident.length > 0, image.incident.length > 0]
  const hasUnresolved = image.delivery.some(isUnresolved)
  const outcome = happened.type === 'recorded' ? happened.outcome : null
  const isFailure = outcome !== null && happened.type === 'recorded' && !happened.run.hasSucceeded
  const isCounted = isFailure && (outcome.state === 'waiting' || outcome.state === 'failed')
  const isSuccess = happened.type === 'recorded' && happened.run.hasSucceeded
  const erasedOf = ({ delivery }: State['image']): number =>
    delivery.filter((row) => row['stop_reason'] === 'payload_erased').length
  const hasStoppedErased = erasedOf(image) > erasedOf(before.image)
  const resolves = isSuccess || happened.type === 'discarded' || hasStoppedErased
  const broken: string[] = []
  if (isOpen && !wasOpen && !isCounted)
    broken.push('an incident is opened only by a failure that leaves its delivery waiting or failed')
  if (!isOpen && isCounted)
    broken.push('a failure that leaves its delivery waiting or failed has an incident')
  if (wasOpen && !isOpen && happened.type !== 'deleted' && (!resolves || hasUnresolved))
    broken.push(
      'an incident is closed only by a success, a discard or an erasure that leaves nothing unresolved',
    )
  if (isOpen && happened.type === 'deleted') broken.push('a deleted webhook has no open incident')
  if (isOpen && resolves && !hasUnresolved && !isSame(before.image, image))
    broken.push('a success, a discard or an erasure that leaves nothing unresolved closes the incident')
  if (
    isOpen &&
    !image.delivery.some(
      (row) => isUnresolved(row) || (row['state'] === 'stopped' && Number(row['attempts']) > 0),
    )
  )
    broken.push('no incident is open with nothing unresolved and nothing stopped')
  const hasExhausted = image.incident.some((row) => row['exhausted_at'] !== null)
  const hadExhausted = before.image.incident.some((row) => row['exhausted_at'] !== null)
  if (isCounted && outcome.state === 'failed' && !hasExhausted)
    broken.push('the incident of a delivery that failed permanently is exhausted')
  if (hasExhausted && !hadExhausted && outcome?.state !== 'failed')
    broken.push('only a delivery that failed permanently exhausts an incident')
  return broken
}

/** What may happen to one row in one step. */
function transition(before: State, after: State, delivery: number, row: Row, step: Step<State>): string[] {
  const was = rowOf(before, delivery)
  if (was === undefined || step.kind === 'time') return []
  const { happened } = after
  const broken: string[] = []
  if (was['state'] === 'completed' && row['state'] !== 'completed')
    broken.push('a completed delivery stays completed')
  if (Number(row['attempts']) < Number(was['attempts'])) broken.push('recorded attempts stay recorded')
  const isMoved = was['next_attempt_at'] !== row['next_attempt_at'] && row['next_attempt_at'] !== null
  if (isMoved && happened.type !== 'recorded' && happened.type !== 'retried')
    broken.push('only the record of a failure and a retry of a user set when the next attempt is due')
  if (isUnderWay(was) && row['state'] !== 'in_progress') {
    const isBy = happened.type === 'recorded' || happened.type === 'gave_back'
    if (!isBy) broken.push('an attempt under way ends by its record or its run')
  }
  if (was['state'] === row['state']) return broken
  if (
    was['state'] === 'stopped' &&
    happened.type !== 'recorded' &&
    happened.type !== 'retried' &&
    happened.type !== 'switched'
  )
    broken.push('only a user resumes what is stopped')
  return broken
}

/** Rules 3 and 7: every row has a next step, within its bound; nothing that was accepted is lost. */
function standing(state: State, delivery: number, row: Row): string[] {
  const broken: string[] = []
  const workflow = state.workflows[delivery] ?? null
  const isTaken = takes(state, delivery)
  const sweepInMs = row['sweep_at']
  const isFinal = row['completed_at'] !== null
  if (row['state'] === 'stopped' && row['attempts'] === 0 && isTaken)
    broken.push('what was accepted and never attempted is not stopped while its webhook takes it')
  if ((row['state'] === 'pending' || row['state'] === 'waiting') && state.posts[delivery] !== 0)
    broken.push('what is pending or waits has no POST without a record')
  // An erasure that was cut short is carried on by the next claim.
  if (
    row['state'] === 'waiting' &&
    !covers(state, delivery) &&
    numberOf(row['next_attempt_at']) > DUE_TOLERANCE_MS
  )
    broken.push('what its webhook does not take does not wait for its time')
  if (!isFinal) {
    const dueInMs = Math.max(
      0,
      ...['next_attempt_at', 'lease_until'].map((column) => Math.min(1e12, Number(row[column] ?? 0))),
    )
    const boundMs = dueInMs + (row['workflow_started_at'] === null ? SWEEP_BOUND_MS : ALIVE_BOUND_MS)
    if (typeof sweepInMs !== 'number' || sweepInMs > boundMs)
      broken.push('the sweeper reads every row within its bound')
    return broken
  }
  if (typeof sweepInMs === 'number' && sweepInMs > SWEEP_BOUND_MS) broken.push('what a final row owes is due')
  // One that waits for an attempt that is recorded wakes up at the time of that attempt.
  const isAsleep =
    workflow?.phase === 'sleep' &&
    workflow.inMs > MAX_SLEEP_MS &&
    !workflow.isWoken &&
    workflow.number > Number(row['attempts'])
  const isActedOn = state.tasks.some((task) => task.delivery === delivery)
  if (isAsleep && sweepInMs === null && !isActedOn)
    broken.push('a workflow that sleeps is told of the end of its delivery')
  return broken
}

/** In `overflow`: a delivery that was attempted has its workflow, or is owed one. */
export function isOwedItsWorkflow(state: State, delivery: number): boolean {
  const row = rowOf(state, delivery)!
  if (row['completed_at'] === null || row['attempts'] === 0) return true
  return state.workflows[delivery] !== null || row['sweep_at'] !== null
}
