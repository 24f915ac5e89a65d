import { mock } from 'node:test'
import { expect } from 'chai'
import { createExhaustedIncident, type People } from '../../helpers/notifications/addressed-incident.ts'
import { openTransaction, untilWaitingForLock } from '../../helpers/database/database.ts'
import { eventually } from '../../helpers/eventually.ts'
import {
  counted,
  crowd,
  FAILED,
  REFUSED,
  SENT,
  UNKNOWN,
  useSending,
  type Answer,
} from '../../helpers/notifications/use-sending.ts'

const ORGANISATION = 'info@zon.example'
const AN = 'an@zon.example'
const TWO: People = { email: ORGANISATION, members: [{ email: AN }] }

/**
 * With the default time-outs a try takes five minutes at most, with the longest ten; after eleven it is over, whatever
 * became of it.
 */
const WITHIN_A_TRY_S = 5 * 60
const BEYOND_A_TRY_S = 11 * 60 + 10

describe('sending what is due', () => {
  const sending = useSending()

  /** The channels say nothing until they are told what to say. */
  function hold(): (answer: Answer) => void {
    let release: (answer: Answer) => void = () => undefined
    const held = new Promise<Answer>((resolve) => (release = resolve))
    sending.answer = () => held
    return release
  }
  const makeTryOlder = (seconds: number) =>
    sending.run(
      `UPDATE notification SET claimed_at = claimed_at - $2 * interval '1 second' WHERE incident_id = $1`,
      sending.incident.incidentId,
      seconds,
    )

  describe('how a try ended', () => {
    it('is noted as sent, with the time, and nothing is sent again', async () => {
      await sending.addressed(TWO)
      expect(await sending.send()).to.deep.equal(counted('sent', 2))
      for (const row of await sending.incident.rows()) {
        expect(row).to.include({ state: 'sent', error: null })
        expect(row.sentAt!.getTime()).to.be.closeTo(Date.now(), 5_000)
      }
      expect(await sending.send()).to.deep.equal(counted('sent', 2))
      expect(sending.handed).to.have.members([ORGANISATION, AN])
    })

    it('leaves what was refused for the next round, which sends it', async () => {
      await sending.addressed(TWO)
      sending.answer = (to) => (to === AN ? REFUSED : SENT)
      await sending.send()
      expect(await sending.incident.row(AN)).to.include({ state: 'pending', error: 'busy', sentAt: null })
      sending.answer = () => SENT
      expect(await sending.send()).to.deep.equal(counted('sent', 2))
      expect(await sending.incident.row(AN)).to.include({ state: 'sent', error: null })
      expect(sending.handed.filter((to) => to === AN)).to.have.length(2)
      expect(sending.handed.filter((to) => to === ORGANISATION)).to.have.length(1)
    })

    it('leaves what was refused alone when only what was never tried is to be sent', async () => {
      await sending.addressed(TWO)
      sending.answer = () => REFUSED
      await sending.send({ retry: false })
      sending.answer = () => SENT
      expect(await sending.send({ retry: false })).to.deep.equal(counted('pending', 2))
      expect(sending.handed).to.have.length(2)
      expect(await sending.send({ retry: true })).to.deep.equal(counted('sent', 2))
    })

    for (const outcome of [FAILED, UNKNOWN] as const) {
      it(`is never tried again when it is ${outcome.state}`, async () => {
        await sending.addressed(TWO)
        sending.answer = () => outcome
        expect(await sending.send()).to.deep.equal(counted(outcome.state, 2))
        sending.answer = () => SENT
        expect(await sending.send()).to.deep.equal(counted(outcome.state, 2))
        expect(sending.handed).to.have.length(2)
        const { error } = outcome as { error: string }
        expect(await sending.incident.row(AN)).to.include({ state: outcome.state, error, sentAt: null })
      })
    }

    it('is nothing, where its claim took so long that the incident may be over', async () => {
      await sending.addressed({ email: ORGANISATION })
      const { incidentId } = sending.incident
      const now = performance.now.bind(performance)
      const blocked = await openTransaction(sending.database.dataSource)
      try {
        await blocked.query('SELECT 1 FROM notification WHERE incident_id = $1 FOR UPDATE', [incidentId])
        const sent = sending.send()
        await untilWaitingForLock(sending.database.dataSource)
        mock.method(performance, 'now', () => now() + 11_000)
        await blocked.commitTransaction()
        expect(await sent).to.deep.equal(counted('pending', 1))
      } finally {
        mock.restoreAll()
        await blocked.release()
      }
      expect(sending.handed).to.deep.equal([])
      expect(await sending.send()).to.deep.equal(counted('sent', 1))
    })

    it('gives up what has been refused for a day', async () => {
      await sending.addressed(TWO)
      sending.answer = (to) => (to === AN ? REFUSED : SENT)
      await sending.send()
      await sending.run(`UPDATE notification SET created_at = created_at - interval '25 hours'`)
      await sending.send()
      expect(await sending.incident.row(AN)).to.include({ state: 'failed', error: 'busy; given up' })
      expect(await sending.incident.row(ORGANISATION)).to.include({ state: 'sent' })
      sending.answer = () => SENT
      await sending.send()
      expect(sending.handed.filter((to) => to === AN)).to.have.length(1)
    })

    it('fails for good on a channel that is not set up', async () => {
      const browser = { email: AN, pushEnabled: true, browsers: 1 }
      await sending.addressed({ email: ORGANISATION, members: [browser] })
      expect(await sending.send({ channels: { email: null, push: null } })).to.deep.equal(
        counted('failed', 3),
      )
      const errors = new Set((await sending.incident.rows()).map(({ error }) => error))
      expect([...errors]).to.have.members(['no mail server is set up', 'push is not set up'])
    })
  })

  describe('a try that is lost', () => {
    it('is left alone while it may be at work, and unknown after that', async () => {
      await sending.addressed({ email: ORGANISATION })
      hold()
      void sending.send()
      await eventually(async () =>
        expect(await sending.states()).to.deep.equal({ [ORGANISATION]: 'sending' }),
      )
      await eventually(() => expect(sending.handed).to.have.length(1))
      sending.answer = () => SENT
      await makeTryOlder(WITHIN_A_TRY_S)
      expect(await sending.send()).to.deep.equal(counted('sending', 1))
      await makeTryOlder(BEYOND_A_TRY_S - WITHIN_A_TRY_S)
      expect(await sending.send()).to.deep.equal(counted('unknown', 1))
      expect(await sending.send()).to.deep.equal(counted('unknown', 1))
      expect(sending.handed).to.have.length(1)
    })

    for (const [late, state] of [
      [SENT, 'sent'],
      [FAILED, 'failed'],
      [REFUSED, 'unknown'],
    ] as const) {
      it(`that speaks later and says ${late.state} is ${state}, and not sent again`, async () => {
        await sending.addressed({ email: ORGANISATION })
        const release = hold()
        const slow = sending.send()
        await eventually(() => expect(sending.handed).to.have.length(1))
        await makeTryOlder(BEYOND_A_TRY_S)
        await sending.send()
        release(late)
        expect(await slow).to.deep.equal(counted(state, 1))
        sending.answer = () => SENT
        expect(await sending.send()).to.deep.equal(counted(state, 1))
        expect(sending.handed).to.have.length(1)
      })
    }
  })

  describe('between addressing and sending', () => {
    for (const [what, sql] of [
      ['the incident is closed', 'UPDATE incident SET closed_at = now() WHERE webhook_id = $1'],
      ['the webhook is deleted', 'UPDATE webhook SET deleted_at = now(), secret = NULL WHERE id = $1'],
    ] as const) {
      it(`nothing is handed over when ${what}`, async () => {
        await sending.addressed(TWO)
        await sending.run(sql, sending.incident.webhookId)
        expect(await sending.send()).to.deep.equal(counted('failed', 2))
        expect(sending.handed).to.deep.equal([])
        expect(await sending.incident.row(AN)).to.include({ error: 'over before it could be sent' })
      })

      it(`no further recipient is notified when ${what} meanwhile`, async () => {
        const members = crowd(11)
        await sending.addressed({ email: ORGANISATION, members })
        sending.answer = async () => {
          await sending.run(sql, sending.incident.webhookId)
          return SENT
        }
        await sending.send()
        // Those that were claimed at the same time, and no more.
        expect(sending.handed).to.have.length.within(1, 4)
        expect(await sending.send()).to.deep.equal([
          ...counted('failed', 12 - sending.handed.length),
          ...counted('sent', sending.handed.length),
        ])
      })
    }

    it('messages are held while the webhook is switched off, and sent when it is on again', async () => {
      await sending.addressed(TWO)
      const switchTo = (enabled: boolean) =>
        sending.run(`UPDATE webhook SET enabled = ${enabled} WHERE id = $1`, sending.incident.webhookId)
      await switchTo(false)
      expect(await sending.send()).to.deep.equal(counted('pending', 2))
      expect(sending.handed).to.deep.equal([])
      await switchTo(true)
      expect(await sending.send()).to.deep.equal(counted('sent', 2))
    })

    it('no further recipient is notified when the webhook is switched off meanwhile', async () => {
      await sending.addressed({ email: ORGANISATION, members: crowd(11) })
      sending.answer = async () => {
        await sending.run('UPDATE webhook SET enabled = false WHERE id = $1', sending.incident.webhookId)
        return SENT
      }
      await sending.send()
      expect(sending.handed).to.have.length.within(1, 4)
      expect(await sending.send()).to.deep.equal([
        ...counted('pending', 12 - sending.handed.length),
        ...counted('sent', sending.handed.length),
      ])
    })

    it('nothing more is claimed once the worker is to end', async () => {
      const members = crowd(11)
      await sending.addressed({ email: ORGANISATION, members })
      const ending = new AbortController()
      sending.answer = () => {
        ending.abort(new Error('the worker ends'))
        return SENT
      }
      expect(await sending.send({ signal: ending.signal }).catch((error: unknown) => error)).to.be.instanceOf(
        Error,
      )
      await eventually(async () => expect(Object.values(await sending.states())).not.to.include('sending'))
      expect(sending.handed).to.have.length.within(1, 4)
      sending.answer = () => SENT
      await eventually(async () => expect(await sending.send()).to.deep.equal(counted('sent', 12)))
      expect(new Set(sending.handed)).to.have.property('size', 12)
      expect(sending.handed).to.have.length(12)
    })
  })

  describe('many at once', () => {
    it('are not held up by one that is slow', async () => {
      const members = crowd(9)
      await sending.addressed({ email: ORGANISATION, members })
      const release = hold()
      const held = sending.answer
      sending.answer = (to) => (to === 'member0@zon.example' ? held(to) : SENT)
      const slow = sending.send()
      await eventually(async () => {
        const found = Object.entries(await sending.states()).filter(([, state]) => state === 'sent')
        expect(found).to.have.length(9)
      })
      expect(await sending.states()).to.include({ 'member0@zon.example': 'sending' })
      release(SENT)
      expect(await slow).to.deep.equal(counted('sent', 10))
    })

    it('are handed over once each by workers that send at the same time', async () => {
      const members = crowd(20)
      await sending.addressed({ email: ORGANISATION, members })
      await Promise.all(Array.from({ length: 5 }, () => sending.send()))
      expect(sending.handed).to.have.length(21)
      expect(new Set(sending.handed)).to.have.property('size', 21)
      expect(await sending.send()).to.deep.equal(counted('sent', 21))
    })

    it('are addressed once by looks at the same time', async () => {
      sending.incident = await createExhaustedIncident(sending.database.dataSource, TWO)
      await Promise.all(Array.from({ length: 10 }, () => sending.incident.address()))
      expect(await sending.incident.rows()).to.have.length(2)
    })
  })

  it('says what there is to say at the moment of sending', async () => {
    await sending.addressed({ email: ORGANISATION })
    await sending.send()
    const [opened] = (await sending.run(
      'SELECT opened_at AS at FROM incident WHERE id = $1',
      sending.incident.incidentId,
    )) as { at: Date }[]
    expect(sending.notices[0]).to.deep.equal({
      kind: 2,
      incidentId: sending.incident.incidentId,
      webhookId: sending.incident.webhookId,
      organisationName: 'Camping Test',
      timeZone: 'Europe/Brussels',
      url: 'https://receiver.example.com/hook',
      webhookDescription: '',
      failingSince: opened!.at,
      isFailing: false,
      waiting: 0,
      failed: 1,
      lastError: 'The endpoint answered 503.',
    })
  })

  it('says of an endpoint that has recovered meanwhile, and of no other, that it no longer fails', async () => {
    await sending.addressed({ email: ORGANISATION })
    await sending.run('UPDATE notification SET kind = 1 WHERE incident_id = $1', sending.incident.incidentId)
    sending.answer = () => REFUSED
    await sending.send()
    await sending.run('UPDATE incident SET resumed_at = now() WHERE id = $1', sending.incident.incidentId)
    await sending.send()
    await sending.run(
      `INSERT INTO attempt (delivery_id, webhook_id, number, trigger, url, started_at, duration_ms, outcome, status_code)
       SELECT id, webhook_id, 11, 'schedule', '', now(), 5, 'succeeded', 200 FROM delivery WHERE webhook_id = $1`,
      sending.incident.webhookId,
    )
    await sending.send()
    expect(sending.notices.map(({ isFailing }) => isFailing)).to.deep.equal([true, true, false])
  })
})
