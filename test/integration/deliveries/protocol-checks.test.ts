import { expect } from 'chai'
import { DELIVERY_STATES } from '../../../src/domain/delivery-state.ts'
import type { RowState } from '../../helpers/deliveries/set-row.ts'
import { useRows } from '../../helpers/deliveries/use-rows.ts'

const PENDING: RowState = { state: 'pending' }
const IN_PROGRESS: RowState = { state: 'in_progress', attempts: 1 }
const WAITING: RowState = { state: 'waiting' }
const COMPLETED: RowState = { state: 'completed' }
const FAILED: RowState = { state: 'failed' }
const STOPPED: RowState = { state: 'stopped', attempts: 1 }

/** A change that leaves a row without a next step, or with a wrong one, and what refuses it. */
const REFUSED: [row: RowState, assignments: string, constraint: string][] = [
  [COMPLETED, `state = 'lost'`, 'delivery_state_check'],
  [STOPPED, `stop_reason = 'bored'`, 'delivery_stop_reason_check'],
  [PENDING, 'completed_at = now()', 'delivery_open_check'],
  [WAITING, 'completed_at = now(), next_attempt_at = NULL', 'delivery_open_check'],
  [COMPLETED, 'completed_at = NULL, next_attempt_at = now()', 'delivery_open_check'],
  [FAILED, 'completed_at = NULL, next_attempt_at = now()', 'delivery_open_check'],
  [PENDING, 'sweep_at = NULL', 'delivery_sweep_check'],
  [IN_PROGRESS, 'sweep_at = NULL', 'delivery_sweep_check'],
  [WAITING, 'sweep_at = NULL', 'delivery_sweep_check'],
  [PENDING, 'owner = gen_random_uuid(), lease_until = now()', 'delivery_owner_check'],
  [WAITING, 'owner = gen_random_uuid(), lease_until = now()', 'delivery_owner_check'],
  [COMPLETED, 'owner = gen_random_uuid(), lease_until = now()', 'delivery_owner_check'],
  [IN_PROGRESS, 'owner = NULL, lease_until = NULL', 'delivery_owner_check'],
  [IN_PROGRESS, 'lease_until = NULL', 'delivery_lease_check'],
  [PENDING, 'lease_until = now()', 'delivery_lease_check'],
  [IN_PROGRESS, 'runs = 0', 'delivery_runs_check'],
  [PENDING, 'runs = 1', 'delivery_runs_check'],
  [WAITING, 'runs = 1', 'delivery_runs_check'],
  [COMPLETED, 'runs = 1', 'delivery_runs_check'],
  [PENDING, 'attempts = 1, next_attempt_at = now()', 'delivery_attempts_check'],
  [WAITING, 'attempts = 0, next_attempt_at = NULL', 'delivery_attempts_check'],
  [COMPLETED, 'attempts = 0', 'delivery_attempts_check'],
  [FAILED, 'attempts = 0', 'delivery_attempts_check'],
  [WAITING, 'next_attempt_at = NULL', 'delivery_due_check'],
  [IN_PROGRESS, 'next_attempt_at = NULL', 'delivery_due_check'],
  [PENDING, 'next_attempt_at = now()', 'delivery_due_check'],
  [STOPPED, 'next_attempt_at = now()', 'delivery_due_check'],
  [WAITING, 'attempt_requested = true', 'delivery_requested_check'],
  [COMPLETED, 'attempt_requested = true', 'delivery_requested_check'],
  [FAILED, 'retry_requested = true', 'delivery_retry_check'],
  [STOPPED, 'retry_requested = true', 'delivery_retry_check'],
  [COMPLETED, 'paused_since = now()', 'delivery_paused_check'],
  [STOPPED, 'paused_since = now()', 'delivery_paused_check'],
  [STOPPED, 'stop_reason = NULL', 'delivery_stopped_check'],
  [WAITING, `stop_reason = 'webhook_disabled'`, 'delivery_stopped_check'],
  [COMPLETED, `stop_reason = 'discarded'`, 'delivery_stopped_check'],
  [WAITING, 'is_test = true', 'delivery_test_check'],
  [FAILED, 'is_test = true', 'delivery_test_check'],
]

describe('a row of delivery', () => {
  const suite = useRows()

  for (const [to, assignments, constraint] of REFUSED)
    it(`that is ${to.state} never has ${assignments}`, async () => {
      const { deliveryId } = await suite.deliveryIn(to)
      const refusal: unknown = await suite.database.dataSource
        .query(`UPDATE delivery SET ${assignments} WHERE id = $1`, [deliveryId])
        .catch((error: unknown) => error)
      expect(refusal).to.include({ code: '23514', constraint })
    })

  it('is held by no other constraints than those: each refuses something', async () => {
    const found = await suite.database.dataSource.query<{ name: string }[]>(
      `SELECT conname AS name FROM pg_constraint WHERE conrelid = 'delivery'::regclass AND contype = 'c'`,
    )
    const refusing = new Set(REFUSED.map(([, , constraint]) => constraint))
    expect(found.map(({ name }) => name)).to.have.members([...refusing])
  })

  it('may be in each of its states', async () => {
    const states = [PENDING, IN_PROGRESS, WAITING, COMPLETED, FAILED, STOPPED]
    expect(states.map(({ state }) => state)).to.have.members(DELIVERY_STATES)
    for (const to of states)
      expect(await suite.row(await suite.deliveryIn(to))).to.include({ state: to.state })
  })
})
