import { expect } from 'chai'
import { useDatabase } from '../../helpers/database/database.ts'
import { examine, settingsOf, type Examined } from '../../helpers/doctor/doctored.ts'
import { createTemporalGate } from '../../helpers/temporal/temporal-gate.ts'

describe('posthorn doctor examines what Temporal permits', () => {
  const database = useDatabase()

  async function examineRefusing(...calls: string[]): Promise<Examined> {
    const gate = await createTemporalGate(calls)
    return examine(settingsOf(database.url, { TEMPORAL_ADDRESS: gate.address })).finally(() => gate.close())
  }

  it('finds no problem where every call is permitted', async () => {
    const { problems, find } = await examineRefusing()
    expect(problems).to.deep.equal([])
    expect(find('temporal.rights').level).to.equal('ok')
  })

  it('names an identity that may call nothing', async () => {
    const { problems, skipped } = await examineRefusing('GetSystemInfo')
    expect(problems).to.deep.equal(['error temporal.access_refused'])
    expect(skipped).to.include('temporal.namespace')
  })

  it('names an identity that may only read', async () => {
    const { problems } = await examineRefusing('SignalWorkflowExecution')
    expect(problems).to.deep.equal(['error temporal.rights_missing'])
  })

  it('warns of one that may not read the namespace or its search attributes, and goes on', async () => {
    const { problems, find } = await examineRefusing('DescribeNamespace', 'ListSearchAttributes')
    expect(problems).to.deep.equal([
      'warning temporal.namespace_unreadable',
      'warning temporal.search_attributes_unreadable',
    ])
    expect(find('temporal.rights').level).to.equal('ok')
  })
})
