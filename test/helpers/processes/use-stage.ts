import type { PosthornProcess } from './posthorn.ts'
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

/**
 * A stage for each test of the `describe` it is called in, on one database and with one process for all of them, since
 * a process takes longer to start than most tests.
 */
export function useServedStage(
  options: () => Parameters<Stage['start']>[0] = () => ({}),
): Stage & { posthorn: PosthornProcess } {
  const stage = {} as Stage & { posthorn: PosthornProcess }
  let shared: Stage
  before(async () => {
    shared = await createStage()
    stage.posthorn = await shared.start(options())
  })
  after(() => shared.close())
  beforeEach(async () => {
    const { dataSource, databaseUrl: url } = shared
    Object.assign(stage, await createStage({ database: { dataSource, url, drop: () => Promise.resolve() } }))
  })
  afterEach(() => stage.close())
  return stage
}
