import type { Step } from '../explore.ts'
import { START_HOLD_MS } from '../../../src/deliveries/protocol/sweep.ts'
import { rowOf, withTask, without, type State, type Task } from '../state.ts'
import { newOwner, newRun, TASK_MS, type Actor, type Context } from './context.ts'
import { pull } from './puller.ts'
import { started, woken } from './workflow.ts'

/** Accepts events, and does what it has in memory: starts of workflows and signals. */
export const acceptingProcess: Actor = (state, context) => [
  ...accept(state, context),
  ...state.tasks.flatMap((task) => perform(task, state, context)),
]

function accept(state: State, { product, options }: Context): Step<State>[] {
  const delivery = state.image.delivery.length
  if (delivery >= options.deliveries || options.firstAttempts > 0) return []
  const commit = (label: string, begins: boolean, sweepAfterMs: number): Step<State> => ({
    kind: 'user',
    label: `D${delivery} is committed ${label}`,
    take: async () => {
      const { image } = await product.commit(state, delivery, begins, sweepAfterMs)
      const row = rowOf({ image }, delivery)
      // The webhook takes no such event.
      if (row === undefined) return null
      const next: State = { ...state, image, happened: { type: 'committed', delivery } }
      if (!begins) {
        const held: Task = {
          kind: 'start',
          delivery,
          inMs: sweepAfterMs,
          number: 1,
          dueInMs: 0,
          seenInMs: sweepAfterMs,
        }
        return { ...next, tasks: [...state.tasks, ...(sweepAfterMs > 0 ? [held] : [])] }
      }
      const owner = newOwner(state)
      const owned = image.delivery.map((one) => (one === row ? { ...one, owner } : one))
      const run = newRun({ owner, delivery, number: 1, by: 'process' })
      return { ...next, image: { ...image, delivery: owned }, runs: [...state.runs, run] }
    },
  })
  return options.begins.map((way) => {
    switch (way) {
      case 'inline':
        return commit('in progress', true, 0)
      case 'pulled':
        return commit('pending', false, 0)
      case 'workflow':
        return commit('pending, to start its workflow', false, START_HOLD_MS)
    }
  })
}

function perform(task: Task, state: State, context: Context): Step<State>[] {
  const { delivery } = task
  const tasks = without(state.tasks, task)
  const step = (label: string, take: () => State | Promise<State>): Step<State> => ({
    kind: 'own',
    label,
    take: async () => take(),
  })
  switch (task.kind) {
    case 'start': {
      const { seenInMs } = task
      const mark: Task = { kind: 'mark', delivery, inMs: TASK_MS }
      const start = step(`the workflow of D${delivery} is started with attempt ${task.number}`, () => ({
        ...state,
        workflows: started(state, delivery, task),
        tasks: withTask(tasks, mark),
        happened: { type: 'other' },
      }))
      const drop = step(`the start of the workflow of D${delivery} is dropped`, () => ({
        ...state,
        tasks,
        happened: { type: 'other' },
      }))
      if (seenInMs === null) return [start, drop]
      const giveBack = step(`D${delivery} is given back, not started`, async () => {
        const { image } = await context.product.sweepLater(state, {
          delivery,
          seenInMs,
          inMs: 0,
          isPaused: false,
        })
        return { ...state, image, tasks, happened: { type: 'other' } }
      })
      // Temporal is behind: the attempt is made here.
      const inline = context.options.begins.includes('pulled')
        ? [pull({ ...state, tasks }, delivery, task.number, context)]
        : []
      return [start, drop, giveBack, ...inline]
    }
    case 'mark':
      return [
        step(`D${delivery} is marked as started`, async () => {
          const { image } = await context.product.markStarted(state, delivery)
          return { ...state, image, tasks, happened: { type: 'other' } }
        }),
      ]
    case 'wake':
      return [
        step(`the workflow of D${delivery} is signalled to retry`, () => {
          const next = { number: task.attempts + 1, dueInMs: 0 }
          const workflows = woken({ ...state, workflows: started(state, delivery, next) }, delivery)
          return { ...state, workflows, tasks, happened: { type: 'other' } }
        }),
      ]
    case 'sweep':
      return []
  }
}
