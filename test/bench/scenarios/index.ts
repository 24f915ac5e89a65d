import type { Scenario } from '../scenario.ts'
import { burst } from './burst.ts'
import { cost } from './cost.ts'
import { floor } from './floor.ts'
import { growth } from './growth.ts'
import { isolation } from './isolation.ts'
import { lateness } from './lateness.ts'
import { latency } from './latency.ts'
import { manyHanging } from './many-hanging.ts'
import { memory } from './memory.ts'
import { publish } from './publish.ts'
import { recovery } from './recovery.ts'
import { sustained } from './sustained.ts'
import { tables } from './tables.ts'

/** In the order in which they run. */
export const SCENARIOS: readonly Scenario[] = [
  publish,
  latency,
  burst,
  isolation,
  lateness,
  cost,
  growth,
  floor,
  manyHanging,
  recovery,
  sustained,
  tables,
  memory,
]
