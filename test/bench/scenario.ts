import type { Floor } from './floor/floor.ts'
import type { Generator } from './harness/generator.ts'
import type { Receiver } from './harness/receiver.ts'
import type { Stage, StageOptions } from './stage.ts'

export type Engine = 'dev' | 'postgres'
export type FirstAttempt = 'workflow' | 'overflow' | 'direct'

export type BenchOptions = {
  scenarios: readonly Scenario[]
  firstAttempts: readonly FirstAttempt[]
  engine: Engine
  /** Of Temporal on PostgreSQL. */
  shards: number
  /** Posthorns on the same database and Temporal. */
  processes: number
  tls: boolean
  /** Between bursts. What a burst costs depends on how long the process had nothing to do before. */
  restMs: number
  quick: boolean
  jsonFile: string | null
  /** A folder for the pictures of scenarios that draw one. */
  pictures: string | null
  /** A running product, which is measured in place of the scenarios. */
  target: TargetOptions | null
}

/** `adapterFile` is null for Posthorn. `receiverHost`: this machine, as the product reaches it. */
export type TargetOptions = {
  url: string
  adapterFile: string | null
  receiverHost: string
  /** Version and settings of the product, as the manifest shows them. */
  settings: string
}

/** One line of a scenario's table. Units are in the names. */
export type Row = Readonly<Record<string, string | number>>

/**
 * `problems` are broken promises, such as an event that was lost; they have nothing to do with speed. `details` are
 * further tables by their title.
 */
export type Findings = { rows: Row[]; problems: string[]; details?: Record<string, Row[]> }

/** One line of the findings. */
export type Measured = { row: Row; problems: string[] }

/** What a scenario works with. */
export type Bench = {
  firstAttempt: FirstAttempt
  /** As in the options. */
  restMs: number
  /** Small numbers, to see whether it works. */
  quick: boolean
  say: (line: string) => void
  generator: Generator
  receiver: Receiver
  /** A separate Temporal, database and Posthorn, warmed up. Only one is open at a time. */
  openStage(options: StageOptions): Promise<Stage>
  /** The smallest program that does the same, which POSTs to a path of the receiver. It may be open beside a stage. */
  openFloor(path: string): Promise<Floor>
}

export type Scenario = {
  /** As in docs/performance.md. */
  letter: string
  name: string
  /** What is measured, in one line. */
  title: string
  /** `picture`: the rows as an SVG picture. */
  run(bench: Bench): Promise<Findings & { picture?: string }>
}
