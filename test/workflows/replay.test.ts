import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from '@temporalio/worker'
import { expect } from 'chai'
import { quietRuntime } from '../helpers/temporal/runtime.ts'
import { workflowBundle } from '../helpers/temporal/time-skipping.ts'

const folder = fileURLToPath(new URL('./histories/', import.meta.url))
const files = readdirSync(folder).filter((file) => file.endsWith('.json'))

describe('histories of released workflows', () => {
  it('exist for every shape', () => {
    expect(files.map((file) => file.replace('.json', ''))).to.include.members([
      'first-try-success',
      'exhausted',
      'completed-after-failures',
      'retried-by-user',
      'retried-by-signal',
      'stopped',
      'deferred',
      'followed',
      'retry-job',
      'incident',
      'erasure',
    ])
  })

  for (const file of files) {
    it(`${file} replays with the present workflows`, async () => {
      quietRuntime()
      const history: unknown = JSON.parse(readFileSync(`${folder}${file}`, 'utf8'))
      await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history)
    })
  }

  it('fail to replay where the present workflows would act differently', async () => {
    quietRuntime()
    const text = readFileSync(`${folder}exhausted.json`, 'utf8').replaceAll(
      '"makeAttempt"',
      '"somethingElse"',
    )
    const history: unknown = JSON.parse(text)
    const failure = await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history).catch(
      (error: unknown) => error,
    )
    expect(failure).to.be.instanceOf(Error).with.property('name', 'DeterminismViolationError')
  })
})
