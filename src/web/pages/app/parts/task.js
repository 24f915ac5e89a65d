import { inWords } from './problem.js'

/** @import { App } from '../types.d.ts' */

/**
 * What a dialog does, one piece of work at a time. `problem` says in words why the last one failed, or is empty.
 * @param {Pick<App, 'update'>} app
 */
export function createTask(app) {
  const task = {
    isBusy: false,
    problem: '',
    /** @param {() => Promise<void>} work */
    async run(work) {
      if (task.isBusy) return
      Object.assign(task, { isBusy: true, problem: '' })
      app.update()
      try {
        await work()
      } catch (error) {
        task.problem = inWords(error)
      } finally {
        task.isBusy = false
        app.update()
      }
    },
  }
  return task
}
