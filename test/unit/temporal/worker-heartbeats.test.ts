import { expect } from 'chai'
import type { TemporalConnection } from '../../../src/temporal/namespace.ts'
import { listReportedWorkers } from '../../../src/temporal/task-queue-state.ts'

type Service = Pick<TemporalConnection, 'workflowService'>

/** Temporal at its typed seam: `listWorkers` answers, or refuses with this code of gRPC. */
const temporalWith = (answer: unknown) =>
  ({ workflowService: { listWorkers: () => answer } }) as unknown as Service
const refusing = (code: number) =>
  temporalWith(Promise.reject(Object.assign(new Error('refused'), { code, details: '', metadata: {} })))

const RUNNING = 1
const SHUTTING_DOWN = 2

const reported = (buildId: string, status: number, ageMs: number) => ({
  workerHeartbeat: {
    status,
    heartbeatTime: { seconds: (Date.now() - ageMs) / 1_000 },
    deploymentVersion: { buildId },
  },
})

describe('worker heartbeats', () => {
  it('name the workers that run and have reported lately', async () => {
    const workersInfo = [
      reported('running', RUNNING, 60_000),
      reported('killed', RUNNING, 180_000),
      reported('stopping', SHUTTING_DOWN, 1_000),
    ]
    expect(await listReportedWorkers(temporalWith({ workersInfo }), 'default', 'q')).to.deep.equal([
      { buildId: 'running' },
    ])
  })

  it('name nobody where the server has none', async () => {
    expect(await listReportedWorkers(refusing(12), 'default', 'q')).to.deep.equal([])
  })

  it('report every other refusal', async () => {
    const refused = await listReportedWorkers(refusing(7), 'default', 'q').catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(Error).with.property('message', 'refused')
  })
})
