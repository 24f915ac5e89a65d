import type { Step } from '../explore.ts'
import { replaceAt, without, type State, type Workflow } from '../state.ts'
import { faultsOfRuns } from './runs.ts'
import type { Actor } from './context.ts'

/** What breaks: processes between any two steps, and workflows. */
export const faults: Actor = (state, context) => [
  ...faultsOfRuns(state, context),
  ...faultsOfTasks(state, context),
  ...faultsOfWorkflows(state, context),
]

const faultsOfTasks: Actor = (state, { options }) => {
  if (!options.faults.includes('crash') || state.faultsLeft === 0) return []
  return state.tasks.map((task) => ({
    kind: 'fault',
    label: `the process is killed that is to ${task.kind} D${task.delivery}`,
    take: () =>
      Promise.resolve({
        ...state,
        tasks: without(state.tasks, task),
        faultsLeft: state.faultsLeft - 1,
        happened: { type: 'other' },
      }),
  }))
}

const faultsOfWorkflows: Actor = (state, { product, options }) =>
  state.workflows.flatMap((workflow, delivery) => {
    if (workflow === null || workflow.phase === 'ended') return []
    const steps: Step<State>[] = []
    const become = (
      label: string,
      changed: Workflow | null,
      faultsLeft: number,
      kind: 'own' | 'fault' = 'fault',
    ): void => {
      steps.push({
        kind,
        label,
        take: () =>
          Promise.resolve({
            ...state,
            workflows: replaceAt(state.workflows, delivery, changed),
            faultsLeft,
            happened: { type: 'other' },
          }),
      })
    }
    const { faultsLeft } = state
    if (workflow.isPaused)
      become(`the workflow of D${delivery} is unpaused`, { ...workflow, isPaused: false }, faultsLeft, 'own')
    if (faultsLeft === 0) return steps
    if (options.faults.includes('terminate'))
      become(`the workflow of D${delivery} is terminated`, endedOf(workflow), faultsLeft - 1)
    if (options.faults.includes('pause') && !workflow.isPaused)
      become(`the workflow of D${delivery} is paused`, { ...workflow, isPaused: true }, faultsLeft - 1)
    if (options.faults.includes('wipe'))
      steps.push({
        kind: 'fault',
        label: 'Temporal loses its data, and a sweeper finds out',
        take: async () => {
          const { image } = await product.sweepEverything(state)
          return {
            ...state,
            image,
            workflows: state.workflows.map((one) => one && endedOf(one)),
            faultsLeft: faultsLeft - 1,
            happened: { type: 'other' },
          }
        },
      })
    return steps
  })

function endedOf(workflow: Workflow): Workflow {
  const nothing = { owner: null, outcome: null, isWoken: false, isPaused: false, number: 0, inMs: 0 }
  return { ...workflow, ...nothing, phase: 'ended' }
}
