import { expect } from 'chai'
import { useStage } from '../helpers/processes/stage.ts'
import { createTemporalGate, type TemporalGate } from '../helpers/temporal/temporal-gate.ts'

describe('a Temporal that gives Posthorn no operator rights', () => {
  const stage = useStage()
  let gate: TemporalGate

  before(async () => {
    gate = await createTemporalGate(['ListSearchAttributes', 'AddSearchAttributes'])
  })
  after(() => gate.close())

  it('is warned about with the attributes that have to exist, and delivers', async () => {
    const posthorn = await stage.start({
      temporalAddress: gate.address,
      env: { FIRST_ATTEMPT: 'workflow' },
    })
    const deliveryId = await stage.publish(posthorn)
    await stage.reaches(deliveryId, { state: 'completed', attempts: 1 })
    const lines = posthorn.log().split('\n')
    const warnings = lines.filter((line) => line.includes('"temporal.registration_refused"'))
    expect(warnings).to.have.length(1)
    expect(JSON.parse(warnings[0]!)).to.deep.include({
      needed: ['OrganisationId', 'WebhookId', 'EventKey', 'DeliveryState'],
    })
    expect(await posthorn.stop()).to.equal(0)
  })
})
