import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { operatorKeysText } from '../helpers/api/operator.ts'
import { eventually } from '../helpers/eventually.ts'
import { useServedStage } from '../helpers/processes/stage.ts'
import { createWebhookOwner, type WebhookOwner } from '../helpers/processes/webhook-owner.ts'
import { type Answer, createDeferredAnswers, type DeferredAnswers } from '../helpers/receivers/receiver.ts'

/** The wait before attempt 2, and what whole milliseconds may take from it. */
const WAIT_MS = 1_000
const ROUNDING_MS = 5

/** The machine may be busy. */
const SETTLED_WITHIN_MS = 60_000

/** Each takes deliveries from the webhook, and gives them back. */
const CHANGES = {
  'switched off and on': [{ enabled: false }, { enabled: true }],
  'narrowed and widened': [{ subscribedEventKeys: ['invoice:paid'] }, { subscribedEventKeys: ['*'] }],
  'held and released by an operator': [true, false],
}

/** Confirms after so many ms, except that the first POST fails then. */
const failsFirst =
  (ms: number): Answer =>
  async (index) => {
    await delay(ms)
    return index === 0 ? 500 : 200
  }

describe('a webhook that changes during its first attempts', () => {
  let owner: WebhookOwner
  const stage = useServedStage(() => ({
    env: { FIRST_ATTEMPT: 'direct', POSTHORN_OPERATOR_KEYS: operatorKeysText() },
  }))
  beforeEach(async () => {
    owner = await createWebhookOwner(stage.dataSource, stage.posthorn)
  })
  afterEach(() => owner.close())

  /** Publishes one event, and returns when its POST has come. */
  async function publish(): Promise<string> {
    const deliveryId = await owner.publish()
    await eventually(() => expect(postsOf(deliveryId)).to.have.length(1), SETTLED_WITHIN_MS)
    return deliveryId
  }
  /** The same, with an endpoint that keeps the POST until `answers.release`; it confirms later ones. */
  async function publishKept(): Promise<{ deliveryId: string; answers: DeferredAnswers }> {
    const answers = createDeferredAnswers()
    owner.answerWith(answers.answer)
    const deliveryId = await publish()
    owner.answerWith(() => 200)
    return { deliveryId, answers }
  }
  const change = async (changes: (Parameters<WebhookOwner['change']>[0] | boolean)[]): Promise<void> => {
    for (const one of changes) await (typeof one === 'boolean' ? owner.hold(one) : owner.change(one))
  }
  const postsOf = (deliveryId: string) => owner.receiver.postsOf(deliveryId)

  it('shows a delivery as in progress as soon as its POST begins', async () => {
    const { deliveryId, answers } = await publishKept()
    expect((await owner.delivery(deliveryId)).state).to.equal('in_progress')
    answers.release()
  })

  for (const [changed, changes] of Object.entries(CHANGES)) {
    it(`keeps the schedule of a delivery, and leaves no incident open, though its webhook is ${changed} during its first attempt`, async () => {
      const { deliveryId, answers } = await publishKept()
      await change(changes)
      answers.release(500)
      await stage.reaches(deliveryId, { state: 'completed', attempts: 2 }, SETTLED_WITHIN_MS)
      const [first, second] = postsOf(deliveryId)
      expect(second!.arrivedAt - first!.answeredAt).to.be.at.least(WAIT_MS - ROUNDING_MS)
      expect(await owner.openIncidents()).to.equal(0)
    })

    it(`never makes two POSTs of one delivery at once, though its webhook is ${changed} and a user retries it`, async () => {
      // Two POSTs at once came within 1.6 s of the retry.
      owner.answerWith(failsFirst(3_000))
      const deliveryId = await publish()
      await change(changes)
      await owner.retry(deliveryId)
      await owner.retryAll('stopped')
      await eventually(() => expect(postsOf(deliveryId)[0]!.answeredAt).to.be.above(0))
      const [first, ...others] = postsOf(deliveryId)
      expect(others.filter(({ arrivedAt }) => arrivedAt < first!.answeredAt)).to.have.length(0)
      await stage.reaches(deliveryId, { state: 'completed', attempts: 2 }, SETTLED_WITHIN_MS)
      expect(postsOf(deliveryId)).to.have.length(2)
    })
  }

  it('delivers every accepted event after its webhook is switched off and on', async () => {
    const count = 60
    owner.answerWith(async () => {
      await delay(200)
      return 200
    })
    const published = await Promise.all(Array.from({ length: count }, () => owner.publish()))
    await change(CHANGES['switched off and on'])
    owner.answerWith(() => 200)
    await eventually(async () => {
      const counted = await stage.dataSource.query<{ state: string; count: number }[]>(
        'SELECT state, count(*)::int AS count FROM delivery WHERE webhook_id = $1 GROUP BY state',
        [owner.webhookId],
      )
      expect(counted).to.deep.equal([{ state: 'completed', count }])
    }, SETTLED_WITHIN_MS)
    for (const deliveryId of published) expect(postsOf(deliveryId), deliveryId).to.have.length(1)
  })
})
