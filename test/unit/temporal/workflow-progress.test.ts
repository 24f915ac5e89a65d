import type { WorkflowExecutionDescription, WorkflowExecutionStatusName } from '@temporalio/client'
import { expect } from 'chai'
import { pausedSince } from '../../../src/temporal/workflow-progress.ts'

/** 2026-05-04T09:02:11.204Z, as Temporal gives it. */
const PAUSED_TIME = { seconds: 1_777_885_331, nanos: 204_000_000 }

/** What Temporal describes of a workflow, as far as it is read. */
const described = (name: WorkflowExecutionStatusName, workflowExtendedInfo: object | null = null) =>
  ({ status: { code: 0, name }, raw: { workflowExtendedInfo } }) as unknown as WorkflowExecutionDescription

describe('the progress of a workflow', () => {
  it('is paused since the time that Temporal names', () => {
    const since = pausedSince(described('PAUSED', { pauseInfo: { pausedTime: PAUSED_TIME } }))
    expect(since?.toISOString()).to.equal('2026-05-04T09:02:11.204Z')
  })

  it('is paused now where Temporal names no time', () => {
    expect(pausedSince(described('PAUSED'))).to.be.instanceOf(Date)
  })

  it('is not paused in any other state', () => {
    for (const name of ['RUNNING', 'COMPLETED', 'TERMINATED', 'CONTINUED_AS_NEW'] as const)
      expect(pausedSince(described(name, { pauseInfo: { pausedTime: PAUSED_TIME } })), name).to.equal(null)
  })
})
