import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { FirstAttemptMode } from '../../src/deliveries/dispatch/dispatcher.ts'
import { eventually } from '../helpers/eventually.ts'
import { publishRow } from '../helpers/database/factories.ts'
import type { PosthornProcess } from '../helpers/processes/posthorn.ts'
import type { Answer } from '../helpers/receivers/receiver.ts'
import { useStage } from '../helpers/processes/stage.ts'
import { setRow } from '../helpers/deliveries/set-row.ts'

/** Deadline of a POST, the lease of its row 5 s after that, and a pause that outlasts both and the heartbeat. */
const ATTEMPT_TIMEOUT_MS = 3_000
const PAUSE_MS = 14_000
const ANSWERED_AFTER_MS = 100

const SETTLED_WITHIN_MS = 40_000

/** Then another process takes over when the lease is over. Temporal may give the attempt to the paused one once more. */
const BY_THE_STARTER = { FIRST_ATTEMPT: 'direct' }

describe('a process that is paused during its POST', () => {
  let resume: () => void

  beforeEach(() => {
    resume = () => undefined
  })
  // Before the stage is closed: a process that is stopped does not end.
  afterEach(() => resume())
  const stage = useStage()

  const start = (env: Record<string, string> = {}): Promise<PosthornProcess> =>
    stage.start({
      env: { ATTEMPT_TIMEOUT_MS: String(ATTEMPT_TIMEOUT_MS), FIRST_ATTEMPT: 'workflow', ...env },
    })
  /** Stops the process while its first POST of all is in progress, and answers that as `first` does; others get `then`. */
  function pauseAtFirst(posthorn: PosthornProcess, first: Answer, then: Answer = () => 200): void {
    let isFirst = true
    stage.answerWith(async (...args) => {
      if (!isFirst) return then(...args)
      isFirst = false
      process.kill(posthorn.pid, 'SIGSTOP')
      resume = () => {
        process.kill(posthorn.pid, 'SIGCONT')
        resume = () => undefined
      }
      await delay(ANSWERED_AFTER_MS)
      return first(...args)
    })
  }
  /** Lets the paused process go on when its deadline, its lease and its heartbeat have passed. */
  async function pass(): Promise<void> {
    await eventually(() => expect(stage.receiver.posts).not.to.have.length(0))
    await delay(PAUSE_MS)
    resume()
  }
  const attemptsOf = async (deliveryId: string): Promise<string[]> => {
    const found = await stage.dataSource.query<{ number: number; outcome: string }[]>(
      'SELECT number, outcome FROM attempt WHERE delivery_id = $1 ORDER BY number',
      [deliveryId],
    )
    return found.map(({ number, outcome }) => `${number} ${outcome}`)
  }
  const count = async (table: 'incident' | 'notification', where = 'true'): Promise<number> => {
    const [found] = await stage.dataSource.query<{ count: number }[]>(
      `SELECT count(*)::int AS count FROM ${table} WHERE ${where}`,
    )
    return found!.count
  }

  for (const mode of ['workflow', 'direct'] satisfies FirstAttemptMode[]) {
    it(`records the confirmation that arrived meanwhile, in \`${mode}\`: one attempt, at most two POSTs, no incident`, async () => {
      const posthorn = await start({ FIRST_ATTEMPT: mode })
      pauseAtFirst(posthorn, () => 200)
      const deliveryId = await stage.publish(posthorn)
      await pass()
      await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, SETTLED_WITHIN_MS)
      expect(await attemptsOf(deliveryId)).to.deep.equal(['1 succeeded'])
      expect(stage.receiver.postsOf(deliveryId).length).to.be.within(1, 2)
      expect(await count('incident')).to.equal(0)
    })
  }

  it('fails nothing permanently at the tenth attempt, and sends no mail', async () => {
    const { organisationId } = stage.member
    const [delivery] = await publishRow(stage.dataSource, organisationId)
    const { deliveryId } = delivery!
    const isDue = { state: 'waiting', attempts: 9, dueInMs: 0, workflow: true } as const
    await setRow(stage.dataSource, deliveryId, { ...isDue, sweepInMs: 86_400_000 })
    const posthorn = await start()
    pauseAtFirst(posthorn, () => 200)
    await stage.dataSource.query('UPDATE delivery SET sweep_at = now() WHERE id = $1', [deliveryId])
    await pass()
    await stage.reaches(deliveryId, { state: 'completed', attempts: 10 }, SETTLED_WITHIN_MS)
    expect(await attemptsOf(deliveryId)).to.deep.equal(['10 succeeded'])
    expect(stage.receiver.postsOf(deliveryId).length).to.be.within(1, 2)
    expect([await count('incident'), await count('notification')]).to.deep.equal([0, 0])
  })

  it('does not change a delivery that another worker confirmed meanwhile, though its own POST had no answer', async () => {
    const first = await start(BY_THE_STARTER)
    pauseAtFirst(first, () => null)
    const deliveryId = await stage.publish(first)
    await eventually(() => expect(stage.receiver.posts).to.have.length(1))
    await start(BY_THE_STARTER)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 }, SETTLED_WITHIN_MS)
    resume()
    await eventually(() => expect(first.log()).to.include('attempt.repeated'))
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    expect(await attemptsOf(deliveryId)).to.deep.equal(['1 succeeded'])
    expect(stage.receiver.postsOf(deliveryId)).to.have.length(2)
    expect(await count('incident')).to.equal(0)
  })

  it('records a confirmation over the failure of another worker, and ends the incident and the retries', async () => {
    const first = await start(BY_THE_STARTER)
    pauseAtFirst(
      first,
      () => 200,
      () => 503,
    )
    const deliveryId = await stage.publish(first)
    await eventually(() => expect(stage.receiver.posts).to.have.length(1))
    const second = await start(BY_THE_STARTER)
    await eventually(
      async () => expect((await attemptsOf(deliveryId))[0]).to.equal('1 failed'),
      SETTLED_WITHIN_MS,
    )
    resume()
    await eventually(async () => expect((await attemptsOf(deliveryId))[0]).to.equal('1 succeeded'))
    await eventually(async () => {
      const [row] = await stage.dataSource.query<{ state: string; sweep_at: Date | null }[]>(
        'SELECT state, sweep_at FROM delivery WHERE id = $1',
        [deliveryId],
      )
      expect(row).to.deep.equal({ state: 'completed', sweep_at: null })
    })
    expect(await count('incident', 'closed_at IS NULL')).to.equal(0)
    const posts = stage.receiver.postsOf(deliveryId).length
    // Longer than the wait that was in progress may take.
    expect(await second.stop()).to.equal(0)
    expect(stage.receiver.postsOf(deliveryId).length).to.be.at.most(posts + 1)
  })
})
