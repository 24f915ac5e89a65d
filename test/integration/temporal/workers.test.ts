import { randomUUID } from 'node:crypto'
import { NativeConnection, Worker } from '@temporalio/worker'
import { expect } from 'chai'
import { createWorkers, type CreateWorker } from '../../../src/temporal/worker.ts'
import { attemptDependencies, testActivities } from '../../helpers/deliveries/attempts.ts'
import { quietRuntime } from '../../helpers/temporal/runtime.ts'
import { testServers } from '../../helpers/runner/servers.ts'
import { useDatabase } from '../../helpers/database/database.ts'

describe('the workers of a process', () => {
  const database = useDatabase()
  let connection: NativeConnection

  before(async () => {
    quietRuntime()
    connection = await NativeConnection.connect({ address: testServers().temporalAddress })
  })

  const settings = {
    namespace: 'default',
    taskQueue: `workers-${randomUUID()}`,
    version: null,
    shutdownGraceMs: 1_000,
  }

  it('leave nothing behind when the second cannot be created, and succeed with the next try', async () => {
    const dependencies = attemptDependencies(database.dataSource)
    const activities = testActivities(dependencies)
    const made: Worker[] = []
    const failingSecond: CreateWorker = async (options) => {
      if (made.length === 1) throw new Error('no second worker')
      const worker = await Worker.create(options)
      made.push(worker)
      return worker
    }
    const failure = await createWorkers(connection, settings, activities, failingSecond).catch(
      (error: unknown) => error,
    )
    expect(failure).to.be.an('error').with.property('message', 'no second worker')
    expect(made.map((worker) => worker.getState())).to.deep.equal(['STOPPED'])
    // The SDK's types lack it: if the SDK dropped it, a paused process would be aborted again.
    expect(made[0]!.options).to.have.property('isolateExecutionTimeoutMs', 3_600_000)

    const workers = await createWorkers(connection, settings, activities)
    const ended = workers.run()
    expect(workers.load().isRunning).to.equal(true)
    workers.shutdown()
    await ended
    // Throws while a worker uses it.
    await connection.close()
    await dependencies.httpClient.close()
  })
})
