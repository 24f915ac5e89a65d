import { createStage, type Stage } from './stage.ts'

/** A stage for each test of the `describe` it is called in, closed whatever becomes of the test. */
export function useStage(): Stage {
  const stage = {} as Stage
  beforeEach(async () => {
    Object.assign(stage, await createStage())
  })
  afterEach(() => stage.close())
  return stage
}
