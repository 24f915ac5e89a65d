import type { Options } from './actors/context.ts'

export type Configuration = Options & { name: string; maxDepth: number }

const base: Options = {
  deliveries: 1,
  firstAttempts: 0,
  maxAttempts: 2,
  begins: ['inline'],
  users: ['switch', 'retry', 'discard'],
  faults: [],
  maxFaults: 0,
  maxRuns: 2,
  hasOverdueAttempts: false,
  hasDeferrals: false,
  hasSlowRecording: false,
  followAfterMs: 0,
}

const configuration = (name: string, options: Partial<Configuration>): Configuration => ({
  ...base,
  maxDepth: Infinity,
  name,
  ...options,
})

const byWorkflow: Partial<Options> = { begins: ['workflow'] }

/** Those with one delivery are explored to the fixed point, those with two to `maxDepth`. */
export const CONFIGURATIONS: readonly Configuration[] = [
  configuration('begun by the commit', {}),
  configuration('pulled, switched and narrowed', {
    begins: ['pulled'],
    users: ['switch', 'narrow', 'delete'],
  }),
  configuration('direct', { begins: ['inline', 'pulled'], users: ['switch'], followAfterMs: null }),
  configuration('stopped in mid-POST', { users: ['switch'], faults: ['stop'], maxFaults: 2 }),
  configuration('the last attempts', { firstAttempts: 8, maxAttempts: 11 }),
  configuration('workflows lost', {
    ...byWorkflow,
    users: ['retry'],
    faults: ['terminate', 'wipe'],
    maxFaults: 1,
  }),
  configuration('slow to record', {
    users: ['switch'],
    faults: ['stall'],
    maxFaults: 1,
    hasSlowRecording: true,
  }),
  configuration('killed', { users: ['switch', 'retry'], faults: ['crash'], maxFaults: 2 }),
  configuration('killed again and again', { users: [], faults: ['crash'], maxFaults: 7 }),
  configuration('erased', { users: ['erase', 'switch'] }),
  configuration('erased with a workflow', {
    ...byWorkflow,
    users: ['erase', 'retry'],
    faults: ['crash'],
    maxFaults: 1,
  }),
  configuration('erased in the last attempts', {
    firstAttempts: 8,
    maxAttempts: 11,
    users: ['erase', 'discard'],
  }),
  configuration('deferred', { ...byWorkflow, users: ['retry'], hasDeferrals: true }),
  configuration('paused in the last attempts', {
    firstAttempts: 8,
    maxAttempts: 11,
    users: [],
    faults: ['stall'],
    maxFaults: 1,
    maxRuns: 3,
  }),
  configuration('an incident of two', { deliveries: 2, users: ['switch'], maxDepth: 14 }),
  configuration('two deliveries', {
    deliveries: 2,
    users: ['switch', 'narrow', 'retry', 'discard'],
    maxDepth: 9,
  }),
  configuration('begun by a workflow', { ...byWorkflow }),
  configuration('killed with a workflow', {
    ...byWorkflow,
    users: ['switch'],
    faults: ['crash'],
    maxFaults: 2,
  }),
  configuration('paused', { users: ['switch', 'retry'], faults: ['stall'], maxFaults: 1 }),
  configuration('paused with a workflow', {
    ...byWorkflow,
    users: ['switch'],
    faults: ['stall'],
    maxFaults: 1,
  }),
  configuration('workflows paused', { ...byWorkflow, users: ['retry'], faults: ['pause'], maxFaults: 1 }),
  configuration('direct, overdue', {
    firstAttempts: 5,
    maxAttempts: 7,
    users: ['retry'],
    faults: ['terminate'],
    maxFaults: 1,
    hasOverdueAttempts: true,
    followAfterMs: null,
  }),
]
