import type { Scenario } from '../scenario.ts'
import { burst } from './burst.ts'
import { cost } from './cost.ts'
import { force } from './force.ts'
import { growth } from './growth.ts'
import { isolation } from './isolation.ts'
import { lateness } from './lateness.ts'
import { latency } from './latency.ts'
import { publish } from './publish.ts'

/** In the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  publish,
  latency,
  burst,
  isolation,
  lateness,
  force,
  cost,
  growth,
]
