import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../helpers/eventually.ts'
import { createMailServer, type MailServer } from '../helpers/notifications/mail-server.ts'
import { createStage, type Stage } from '../helpers/processes/stage.ts'

const NOTIFY_AFTER_S = 2

describe('kill -9 of the process, and its incidents', function () {
  let stage: Stage
  let mail: MailServer

  afterEach(async () => {
    await stage.close()
    await mail.close()
  })

  const begin = async (mailDelayMs: number): Promise<void> => {
    stage = await createStage()
    mail = await createMailServer({ delayMs: mailDelayMs })
    stage.answerWith(() => 500)
  }
  const start = () =>
    stage.start({
      env: {
        POSTHORN_NOTIFY_AFTER_SECONDS: String(NOTIFY_AFTER_S),
        SMTP_HOST: mail.host,
        SMTP_PORT: String(mail.port),
        SMTP_TLS: 'none',
      },
    })
  const states = async (): Promise<string[]> => {
    const found = await stage.dataSource.query<{ state: string }[]>('SELECT state FROM notification')
    return found.map(({ state }) => state)
  }

  it('between claim and acceptance: never sent again, and seen to be unknown', async () => {
    await begin(3_000)
    const first = await start()
    await stage.publish(first)
    await eventually(async () => expect(await states()).to.deep.equal(['sending', 'sending']))
    await first.kill()
    const second = await start()
    // Temporal gives the activity to the new process within its heartbeat's ten seconds.
    await stage.dataSource.query(`UPDATE notification SET claimed_at = claimed_at - interval '11 minutes'`)
    await eventually(async () => expect(await states()).to.deep.equal(['unknown', 'unknown']), 60_000)
    await eventually(() => expect(second.log()).to.include('notification.outcome_lost'))
    await delay(5_000)
    // The server took both while it was thinking, or saw the line cut: once each at most.
    expect(mail.mails.length).to.be.at.most(2)
    expect(await states()).to.deep.equal(['unknown', 'unknown'])
  })

  it('before notification 1 is due: it comes from the next process, once to each', async () => {
    await begin(0)
    const first = await start()
    await stage.publish(first)
    await eventually(async () => {
      const found = await stage.dataSource.query<object[]>('SELECT id FROM incident')
      expect(found).to.have.length(1)
    })
    await first.kill()
    await start()
    await eventually(() => expect(mail.mails).to.have.length(2), 60_000)
    await delay(3_000)
    expect(mail.mails).to.have.length(2)
    expect(await states()).to.deep.equal(['sent', 'sent'])
  })

  it('between opening and signalling: the sweeper signals', async () => {
    await begin(0)
    const posthorn = await start()
    await stage.publish(posthorn)
    await eventually(async () => expect(await states()).to.deep.equal(['sent', 'sent']))
    // As a process leaves it that dies right after its commit: to be swept, and the workflow gone.
    await stage.dataSource.query(`UPDATE incident SET exhausted_at = now(), sweep_at = now()`)
    await eventually(() => expect(mail.mails).to.have.length(4))
    await eventually(async () => expect(await states()).to.deep.equal(['sent', 'sent', 'sent', 'sent']))
  })

  it('two workers, and twelve hundred failing deliveries: two mails to each of two recipients, no more', async () => {
    await begin(0)
    const [posthorn] = await Promise.all([start(), start()])
    const deliveries: string[] = []
    for (let batch = 0; batch < 60; batch++)
      deliveries.push(...(await Promise.all(Array.from({ length: 20 }, () => stage.publish(posthorn)))))
    await eventually(async () => expect((await states()).length).to.be.at.least(2), 120_000)
    await stage.dataSource.query(`UPDATE delivery SET attempts = 9 WHERE state = 'waiting'`)
    await eventually(async () => expect((await states()).length).to.equal(4), 120_000)
    await delay(5_000)
    expect(await states()).to.deep.equal(['sent', 'sent', 'sent', 'sent'])
    expect(mail.mails).to.have.length(4)
    const [opened] = await stage.dataSource.query<{ count: number }[]>('SELECT count(*)::int FROM incident')
    expect(opened!.count).to.equal(1)
  })
})
